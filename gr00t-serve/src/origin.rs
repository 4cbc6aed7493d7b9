//! Pages of other sites in a browser on this machine reach its loopback ports too. They must not use the policy: what a browser
//! sends on behalf of a page carries the page's `Origin`, which is checked here. Clients that are no browser send none.

use std::net::IpAddr;
use std::str::FromStr;

use axum::http::Uri;

use crate::text::shown;

/// Where a page is from, as browsers write it: `http://robot-pc:8000`, lower case, no port where it is the scheme's own.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(transparent)]
pub struct Origin(String);

impl FromStr for Origin {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wanted = "wanted http:// or https://, a host, and a port or none, as in http://robot-pc:8000";
        let uri: Uri = text.trim().parse().map_err(|_| wanted)?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else { return Err(wanted) };
        let own_port = match scheme {
            "http" => 80,
            "https" => 443,
            _ => return Err(wanted),
        };
        let host = authority.host();
        // what is not host and port is a user's name or a port that is none
        let port = match authority.as_str().strip_prefix(host) {
            Some("") => None,
            Some(_) => Some(authority.port_u16().ok_or(wanted)?),
            None => return Err(wanted),
        };
        if host.is_empty() || uri.path_and_query().is_some_and(|path| path != "/") {
            return Err(wanted);
        }
        let port = port.filter(|port| *port != own_port).map(|port| format!(":{port}")).unwrap_or_default();
        Ok(Self(format!("{scheme}://{}{port}", host.to_ascii_lowercase())))
    }
}

/// Origins beside the server's own whose pages may use it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Origins(Vec<Origin>);

impl FromIterator<Origin> for Origins {
    fn from_iter<T: IntoIterator<Item = Origin>>(origins: T) -> Self {
        Self(origins.into_iter().collect())
    }
}

impl Origins {
    /// Whether a request with these headers may be served. A page of the server's own has the `Host` that it asks as its
    /// origin. That is believed of an address and of `localhost` alone: any other name can be made to lead here by whoever
    /// owns it, unless the client has a token to show.
    ///
    /// # Errors
    /// The reason, in one line.
    pub fn check(&self, origin: Option<&[u8]>, host: Option<&[u8]>, has_token: bool) -> Result<(), String> {
        let Some(origin) = origin else { return Ok(()) };
        let origin = String::from_utf8_lossy(origin).to_ascii_lowercase();
        let host = String::from_utf8_lossy(host.unwrap_or_default()).to_ascii_lowercase();
        let is_own = ["http://", "https://"]
            .iter()
            .any(|scheme| origin.strip_prefix(scheme).is_some_and(|rest| !rest.is_empty() && rest == host));
        let is_allowed = self.0.iter().any(|allowed| allowed.0 == origin);
        if is_allowed || is_own && (has_token || is_certain(&host)) {
            return Ok(());
        }
        let origin = shown(&origin);
        Err(format!("pages of {origin} may not use this server; --allow-origin lets them"))
    }
}

/// Whether `host` (with or without port) is an address or `localhost`.
fn is_certain(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name == "localhost" || name.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::{Origin, Origins};

    fn allows(origins: &Origins, origin: &str, host: &str, has_token: bool) -> bool {
        origins.check(Some(origin.as_bytes()), Some(host.as_bytes()), has_token).is_ok()
    }

    #[test]
    fn without_an_origin_it_is_no_page() {
        assert_eq!(Origins::default().check(None, Some(b"robot-pc:8000"), false), Ok(()));
    }

    #[test]
    fn the_servers_own_page_may_and_others_may_not() {
        let none = Origins::default();
        for host in ["127.0.0.1:8000", "localhost:8000", "[::1]:8000", "192.168.1.7"] {
            assert!(allows(&none, &format!("http://{host}"), host, false), "{host}");
        }
        for origin in [
            "http://evil.example",
            "null",
            "",
            "http://localhost:3000",
            "http://127.0.0.1:8000.evil.example",
            "http://",
        ] {
            assert!(!allows(&none, origin, "127.0.0.1:8000", true), "{origin}");
        }
    }

    #[test]
    fn a_name_that_could_be_rebound_needs_leave_or_a_token() {
        let (none, some) =
            (Origins::default(), ["http://Robot-PC:8000/".parse().unwrap()].into_iter().collect());
        assert!(!allows(&none, "http://robot-pc:8000", "robot-pc:8000", false));
        assert!(allows(&none, "http://robot-pc:8000", "robot-pc:8000", true));
        assert!(allows(&some, "http://robot-pc:8000", "robot-pc:8000", false));
        assert!(allows(&some, "http://robot-pc:8000", "127.0.0.1:9000", false));
        assert!(!allows(&some, "http://evil.example", "evil.example", false));
    }

    #[test]
    fn an_origin_is_what_browsers_write_and_anything_else_is_refused() {
        let origin = |text: &str| text.parse::<Origin>().map(|origin| origin.0);
        for (text, wanted) in [
            ("http://robot-pc:8000", "http://robot-pc:8000"),
            (" HTTP://Robot-PC:8000/ ", "http://robot-pc:8000"),
            ("http://robot-pc:80", "http://robot-pc"),
            ("https://robot-pc:443", "https://robot-pc"),
            ("https://robot-pc:80", "https://robot-pc:80"),
            ("http://[::1]:8000", "http://[::1]:8000"),
        ] {
            assert_eq!(origin(text).unwrap(), wanted, "{text:?}");
        }
        for text in [
            "",
            "*",
            "null",
            "robot-pc",
            "robot-pc:8000",
            "http://",
            "http://:8000",
            "http://robot-pc:",
            "http://robot-pc:80000",
            "http://robot-pc:8000/page",
            "http://robot-pc:8000?run",
            "http://me@robot-pc:8000",
            "ws://robot-pc:8000",
            "http://two words",
        ] {
            assert!(origin(text).is_err(), "{text:?}");
        }
    }
}
