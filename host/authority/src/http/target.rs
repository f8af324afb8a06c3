//! Where a request goes, read from the request once; what is judged is what is connected to.

use http::Uri;
use leasehold_contract::authority::{HttpTarget, Scheme};

/// Where a request goes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// With or without TLS.
    pub scheme: Scheme,
    /// The host in lower case, an IPv6 address without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl Target {
    /// The target of an absolute URL; none when it names a user, no host, or a scheme that is not HTTP.
    pub fn of(uri: &Uri) -> Option<Target> {
        let scheme = match uri.scheme_str()? {
            "https" => Scheme::Https,
            "http" => Scheme::Http,
            _ => return None,
        };
        let authority = uri.authority()?;
        if authority.as_str().contains('@') {
            return None;
        }
        let host = authority.host();
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let port = match authority.port() {
            // A port that is no number is left out by the parser; it was written all the same.
            None if authority.as_str().len() != host.len() => return None,
            None => scheme.port(),
            Some(port) => port.as_u16(),
        };
        (!bare.is_empty() && port != 0).then(|| Target { scheme, host: bare.to_ascii_lowercase(), port })
    }

    /// The same for the policy, with a method.
    pub fn with<'a>(&'a self, method: &'a str) -> HttpTarget<'a> {
        HttpTarget { scheme: self.scheme, host: &self.host, port: self.port, method }
    }

    /// Host and port as a `Host` header has them.
    pub fn host_header(&self) -> String {
        let host = match self.host.contains(':') {
            true => format!("[{}]", self.host),
            false => self.host.clone(),
        };
        if self.port == self.scheme.port() { host } else { format!("{host}:{}", self.port) }
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}://{}", self.scheme.name(), self.host_header())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_what_the_url_says_and_nothing_hidden_in_it() {
        let cases = [
            ("https://Api.Example.com/x", Some("https://api.example.com")),
            ("http://api.example.com:8080", Some("http://api.example.com:8080")),
            ("http://api.example.com:80/", Some("http://api.example.com")),
            ("http://[::1]:8080/", Some("http://[::1]:8080")),
            ("https://good.example@evil.example/", None),
            ("https://user:pass@evil.example/", None),
            ("ftp://x.example/", None),
            ("/path", None),
            ("http://x.example:0/", None),
        ];
        for (url, expected) in cases {
            let target = Target::of(&url.parse().unwrap()).map(|target| target.to_string());
            assert_eq!(target.as_deref(), expected, "{url}");
        }
    }
}
