//! Pages of other sites in a browser on this machine reach its loopback ports too. They must not use the policy: what a browser
//! sends on behalf of a page carries the page's `Origin`, which is checked here. Clients that are no browser send none.

use std::net::IpAddr;

/// Origins beside the server's own whose pages may use it, as in `http://robot-pc:8000`.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
#[serde(transparent)]
pub struct Origins(Vec<String>);

impl Origins {
    /// These origins.
    pub fn new(origins: impl IntoIterator<Item = String>) -> Self {
        Self(origins.into_iter().map(|origin| origin.trim_end_matches('/').to_ascii_lowercase()).collect())
    }

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
        if self.0.contains(&origin) || is_own && (has_token || is_certain(&host)) {
            return Ok(());
        }
        let shown: String = origin.chars().filter(|c| !c.is_control()).take(100).collect();
        Err(format!("pages of {shown} may not use this server; --allow-origin lets them"))
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
    use super::Origins;

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
        let (none, some) = (Origins::default(), Origins::new(["http://Robot-PC:8000/".to_owned()]));
        assert!(!allows(&none, "http://robot-pc:8000", "robot-pc:8000", false));
        assert!(allows(&none, "http://robot-pc:8000", "robot-pc:8000", true));
        assert!(allows(&some, "http://robot-pc:8000", "robot-pc:8000", false));
        assert!(allows(&some, "http://robot-pc:8000", "127.0.0.1:9000", false));
        assert!(!allows(&some, "http://evil.example", "evil.example", false));
    }
}
