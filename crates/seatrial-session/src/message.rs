//! The runtime's error texts without what only its own developers can use: source files, lines and C++ signatures.

/// The text for people: `Gather: indices element out of data bounds, idx=8 …`.
pub(crate) fn trim(text: &str) -> String {
    let (node, rest) = split_node(text.trim());
    let cause = without_source(rest);
    match node {
        Some((operator, "")) => format!("{operator}: {cause}"),
        Some((operator, name)) => format!("{operator} `{name}`: {cause}"),
        None => cause,
    }
}

/// Takes apart `Non-zero status code returned while running OP node. Name:'N' Status Message: REST`.
fn split_node(text: &str) -> (Option<(&str, &str)>, &str) {
    let parts = || {
        let rest = text.strip_prefix("Non-zero status code returned while running ")?;
        let (operator, rest) = rest.split_once(" node. Name:'")?;
        let (name, rest) = rest.split_once("' Status Message: ")?;
        Some((Some((operator, name)), rest))
    };
    parts().unwrap_or((None, text))
}

/// Drops `path/file.cc:12 type ns::function(arguments) condition was false. ` wherever it begins.
fn without_source(text: &str) -> String {
    let Some((before, after)) = around_location(text) else {
        return text.split_whitespace().collect::<Vec<_>>().join(" ");
    };
    let after = without_function(after);
    let after = after.split_once(" was false. ").map_or(after, |(_, message)| message);
    without_source(&format!("{before} {after}"))
}

/// What stands before and behind the first word that ends in `file.cc:12`.
fn around_location(text: &str) -> Option<(&str, &str)> {
    let is_location = |word: &str| {
        word.rsplit_once(':').is_some_and(|(file, line)| {
            let source = [".cc", ".h", ".cpp", ".cu", ".hpp"].iter().any(|ending| file.ends_with(ending));
            source && !line.is_empty() && line.bytes().all(|b| b.is_ascii_digit())
        })
    };
    let word = text.split_whitespace().find(|word| is_location(word))?;
    // A location may follow a colon without a blank: `model.onnx failed:/src/graph.cc:5`.
    let place = word.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches(':');
    let start = place.find(":/").map_or(0, |colon| colon + 1);
    let at = text.find(word)? + start;
    Some((text.get(..at)?, text.get(at + word.len() - start..)?))
}

/// Drops a C++ function with its arguments from the front, when there is one.
fn without_function(text: &str) -> &str {
    let Some((head, _)) = text.split_once('(') else { return text };
    if !head.contains("::") && !head.trim().ends_with("operator") {
        return text;
    }
    let mut depth = 0usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth <= 1 => return text.get(at + 1..).unwrap_or_default().trim_start_matches(" const"),
            ')' => depth -= 1,
            _ => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::trim;

    #[test]
    fn only_the_cause_is_left() {
        let gather = "Non-zero status code returned while running Gather node. Name:'' Status Message: indices \
                      element out of data bounds, idx=8 must be within the inclusive range [-8,7]";
        let reshape = "Non-zero status code returned while running Reshape node. Name:'r' Status Message: \
                       /onnxruntime_src/onnxruntime/core/providers/cpu/tensor/reshape_helper.h:91 \
                       onnxruntime::ReshapeHelper::ReshapeHelper(const onnxruntime::TensorShape&, \
                       std::function<void(int)>, bool) input_shape_size == requested_shape_size was false. The \
                       input tensor cannot be reshaped to the requested shape. Input shape:{2,4}\n";
        let model = "Load model from /m/x.onnx failed:/onnxruntime_src/onnxruntime/core/graph/model.cc:256 \
                     onnxruntime::Model::Model(onnx::ModelProto&&, const onnxruntime::PathString&) Unsupported model \
                     IR version: 99, max supported IR version: 13\n";
        let external = "External data path validation failed for initializer: w. Error: tensorprotoutils.cc:461 \
                        ValidateExternalDataPathFromDir External data path does not exist: \"/m/not_there.bin\"";
        for (text, expected) in [
            (
                gather,
                "Gather: indices element out of data bounds, idx=8 must be within the inclusive range [-8,7]",
            ),
            (
                reshape,
                "Reshape `r`: The input tensor cannot be reshaped to the requested shape. Input shape:{2,4}",
            ),
            (
                model,
                "Load model from /m/x.onnx failed: Unsupported model IR version: 99, max supported IR version: 13",
            ),
            (
                external,
                "External data path validation failed for initializer: w. Error: ValidateExternalDataPathFromDir \
                 External data path does not exist: \"/m/not_there.bin\"",
            ),
            ("plain", "plain"),
            ("", ""),
            ("x.cc:9", ""),
            ("a.cc:1 ns::f(((", "ns::f((("),
        ] {
            assert_eq!(trim(text), expected, "from {text:?}");
        }
    }
}
