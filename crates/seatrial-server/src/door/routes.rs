//! Paths to routes. Pure: the text of the request line in, what is meant out.

use std::borrow::Cow;

use hyper::Method;
use seatrial_types::{Code, Error, Result};

/// What a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route<'a> {
    /// `/v2`
    Server,
    /// `/v2/health/live`
    Live,
    /// `/v2/health/ready`
    Ready,
    /// `/v2/models`
    Models,
    /// `/v2/models/stats`
    AllStats,
    /// `/v2/repository/index`
    Index,
    /// `/v2/repository/models/M/load`
    Load(Cow<'a, str>),
    /// `/v2/repository/models/M/unload`
    Unload(Cow<'a, str>),
    /// `/metrics`
    Metrics,
    /// `/openapi.json`
    OpenApi,
    /// `/v2/models/M[/versions/V][/what]`, and `/v1/models/M[/versions/V]:predict`
    Model {
        /// The model's name, decoded.
        name: Cow<'a, str>,
        /// The version, when the path names one.
        version: Option<Cow<'a, str>>,
        /// What is asked of it.
        verb: Verb,
    },
}

/// What is asked of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Metadata,
    Ready,
    Config,
    Stats,
    Infer,
    Predict,
}

impl Route<'_> {
    /// The methods that this route takes, for the `Allow` header.
    pub(crate) const fn allow(&self) -> &'static str {
        match self {
            Self::Model { verb: Verb::Infer | Verb::Predict, .. }
            | Self::Index
            | Self::Load(_)
            | Self::Unload(_) => "POST",
            _ => "GET, HEAD",
        }
    }

    /// Whether the method fits the route.
    pub(crate) fn takes(&self, method: &Method) -> bool {
        match self.allow() {
            "POST" => method == Method::POST,
            _ => method == Method::GET || method == Method::HEAD,
        }
    }
}

/// Finds the route of a path. The query is not part of it and one slash at the end does not matter.
pub(crate) fn route(path: &str) -> Result<Route<'_>> {
    let trimmed = path.strip_suffix('/').unwrap_or(path);
    let parts: Vec<&str> = trimmed.split('/').skip(1).collect();
    match parts.as_slice() {
        ["v2"] => Ok(Route::Server),
        ["v2", "health", "live"] => Ok(Route::Live),
        ["v2", "health", "ready"] => Ok(Route::Ready),
        ["v2", "models"] => Ok(Route::Models),
        ["v2", "models", "stats"] => Ok(Route::AllStats),
        ["v2", "repository", "index"] => Ok(Route::Index),
        ["v2", "repository", "models", name, "load"] => Ok(Route::Load(segment(name, "model name")?)),
        ["v2", "repository", "models", name, "unload"] => Ok(Route::Unload(segment(name, "model name")?)),
        ["metrics"] => Ok(Route::Metrics),
        ["openapi.json"] => Ok(Route::OpenApi),
        ["v2", "models", name, "versions", version, rest @ ..] => model(path, name, Some(*version), rest),
        ["v2", "models", name, rest @ ..] => model(path, name, None, rest),
        ["v1", "models", name, "versions", last] => predict(path, name, Some(*last)),
        ["v1", "models", last] => predict(path, last, None),
        _ => Err(unknown(path)),
    }
}

fn model<'a>(path: &str, name: &'a str, version: Option<&'a str>, rest: &[&str]) -> Result<Route<'a>> {
    let verb = match rest {
        [] => Verb::Metadata,
        ["ready"] => Verb::Ready,
        ["config"] => Verb::Config,
        ["stats"] => Verb::Stats,
        ["infer"] => Verb::Infer,
        _ => return Err(unknown(path)),
    };
    let name = segment(name, "model name")?;
    let version = version.map(|v| segment(v, "version")).transpose()?;
    Ok(Route::Model { name, version, verb })
}

/// The path of TensorFlow Serving, whose verb hangs on the last segment.
fn predict<'a>(path: &str, name: &'a str, version: Option<&'a str>) -> Result<Route<'a>> {
    let bare = |last: &'a str| last.strip_suffix(":predict").ok_or_else(|| unknown(path));
    let (name, version) = match version {
        Some(version) => (name, Some(bare(version)?)),
        None => (bare(name)?, None),
    };
    let name = segment(name, "model name")?;
    let version = version.map(|v| segment(v, "version")).transpose()?;
    Ok(Route::Model { name, version, verb: Verb::Predict })
}

fn unknown(path: &str) -> Error {
    let shown: String = path.chars().take(200).collect();
    Error::new(Code::NotFound, format!("there is no path `{shown}` on this server"))
}

/// Undoes percent-encoding. A segment that then walks the tree or is no text is refused.
fn segment<'a>(raw: &'a str, what: &str) -> Result<Cow<'a, str>> {
    let wrong = |why: &str| Error::invalid(format!("the {what} in the path {why}"));
    let decoded = if raw.contains('%') {
        let bytes = decode(raw).ok_or_else(|| wrong("has a `%` without two hex digits"))?;
        Cow::Owned(String::from_utf8(bytes).map_err(|_| wrong("is not UTF-8"))?)
    } else {
        Cow::Borrowed(raw)
    };
    if decoded.is_empty() || decoded == "." || decoded == ".." {
        return Err(wrong(&format!("is `{decoded}`")));
    }
    if decoded.contains(|c: char| c == '/' || c == '\\' || c.is_control()) {
        return Err(wrong("holds a slash or a control character"));
    }
    Ok(decoded)
}

fn decode(raw: &str) -> Option<Vec<u8>> {
    let mut bytes = raw.bytes();
    let mut out = Vec::with_capacity(raw.len());
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let high = char::from(bytes.next()?).to_digit(16)?;
            let low = char::from(bytes.next()?).to_digit(16)?;
            out.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            out.push(byte);
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_model(name: &str, version: Option<&str>, verb: Verb) -> Route<'static> {
        Route::Model { name: name.to_owned().into(), version: version.map(|v| v.to_owned().into()), verb }
    }

    #[test]
    fn paths_lead_to_routes() {
        let cases = [
            ("/v2", Route::Server),
            ("/v2/", Route::Server),
            ("/v2/health/live", Route::Live),
            ("/v2/health/ready/", Route::Ready),
            ("/v2/models", Route::Models),
            ("/v2/models/stats", Route::AllStats),
            ("/v2/repository/index", Route::Index),
            ("/v2/repository/models/e%63ho/load", Route::Load("echo".into())),
            ("/v2/repository/models/m/unload/", Route::Unload("m".into())),
            ("/metrics", Route::Metrics),
            ("/openapi.json", Route::OpenApi),
            ("/v2/models/m", of_model("m", None, Verb::Metadata)),
            ("/v2/models/m/stats", of_model("m", None, Verb::Stats)),
            ("/v2/models/e%63ho/infer", of_model("echo", None, Verb::Infer)),
            ("/v2/models/%F0%9F%98%80/ready", of_model("\u{1f600}", None, Verb::Ready)),
            ("/v2/models/m/versions/1.0.0/infer/", of_model("m", Some("1.0.0"), Verb::Infer)),
            ("/v2/models/m/versions/1", of_model("m", Some("1"), Verb::Metadata)),
            ("/v1/models/m:predict", of_model("m", None, Verb::Predict)),
            ("/v1/models/a:b:predict/", of_model("a:b", None, Verb::Predict)),
            ("/v1/models/m/versions/1.0.0:predict", of_model("m", Some("1.0.0"), Verb::Predict)),
        ];
        for (path, expected) in cases {
            assert_eq!(route(path), Ok(expected), "{path}");
        }
    }

    #[test]
    fn other_paths_are_refused() {
        let cases = [
            ("", Code::NotFound),
            ("/", Code::NotFound),
            ("/v1/models/m", Code::NotFound),
            ("/v1/models/m:classify", Code::NotFound),
            ("/v1/models/m:predict/versions/1", Code::NotFound),
            ("/v1/models/m/versions/1", Code::NotFound),
            ("/v1/models/:predict", Code::InvalidArgument),
            ("/v1/models/m/versions/..:predict", Code::InvalidArgument),
            ("/v2/models//infer", Code::InvalidArgument),
            ("/v2/models/m/versions", Code::NotFound),
            ("/v2/models/m/versions/1/2/infer", Code::NotFound),
            ("/v2/models/m/load", Code::NotFound),
            ("/v2/repository/models/m", Code::NotFound),
            ("/v2/repository/models/../load", Code::InvalidArgument),
            ("/v2/models/../infer", Code::InvalidArgument),
            ("/v2/models/%2e%2e/infer", Code::InvalidArgument),
            ("/v2/models/a%2fb/infer", Code::InvalidArgument),
            ("/v2/models/a%00/infer", Code::InvalidArgument),
            ("/v2/models/a%zz/infer", Code::InvalidArgument),
            ("/v2/models/a%f/infer", Code::InvalidArgument),
            ("/v2/models/%ff/infer", Code::InvalidArgument),
            ("/v2/models/m/versions/..%2f..%2fetc/infer", Code::InvalidArgument),
        ];
        for (path, code) in cases {
            assert_eq!(route(path).unwrap_err().code, code, "{path}");
        }
    }

    #[test]
    fn each_route_says_which_methods_it_takes() {
        let infer = of_model("m", None, Verb::Infer);
        assert!(infer.takes(&Method::POST) && !infer.takes(&Method::GET));
        assert!(Route::Live.takes(&Method::HEAD) && !Route::Live.takes(&Method::POST));
    }
}
