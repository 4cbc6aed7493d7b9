//! A headless Chromium, told what to do over its DevTools protocol
//! (<https://chromedevtools.github.io/devtools-protocol/>), as much of it as the page's tests need.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

/// Names of the program, in the order in which they are looked for; `GR00T_CHROMIUM` comes before all.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];
/// A browser or page that takes longer is broken; a busy machine takes a part of it.
const LIMIT: Duration = Duration::from_mins(1);
/// No window, no sandbox of its own inside a container, and no talk with anybody but the page's server.
const FLAGS: [&str; 12] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--disable-sync",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--no-proxy-server",
    "--remote-debugging-port=0",
];

/// The program, if this machine has it.
pub(crate) fn program() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("GR00T_CHROMIUM") {
        return Some(PathBuf::from(named));
    }
    let folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH")?).collect();
    NAMES.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name))).find(|p| p.is_file())
}

/// One browser with one page, ended when dropped.
pub(crate) struct Browser {
    process: Child,
    _profile: TempDir,
    socket: WebSocketStream<TcpStream>,
    session: Value,
    next: u64,
    /// Whether the last page that was asked for is there, its script run.
    loaded: bool,
    /// Exceptions of the page's script, and what the browser refused to load or run.
    pub(crate) complaints: Vec<String>,
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Browser {
    /// Starts `program` and opens `url`.
    pub(crate) async fn open(program: &Path, url: &str) -> Self {
        let profile = tempfile::tempdir().unwrap();
        let mut folder = OsString::from("--user-data-dir=");
        folder.push(profile.path());
        let mut process = Command::new(program)
            .args(FLAGS)
            .arg(folder)
            .arg("about:blank")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stderr.take().unwrap()).lines().map_while(Result::ok);
        let (found, address) = mpsc::channel();
        // reads on until the browser ends, so that its pipe never fills
        std::thread::spawn(move || {
            for line in lines {
                if let Some(address) = line.strip_prefix("DevTools listening on ") {
                    let _ = found.send(address.to_owned());
                }
            }
        });
        let address = address.recv_timeout(LIMIT).expect("the browser says where it listens");
        let host = address.strip_prefix("ws://").and_then(|rest| rest.split('/').next()).unwrap();
        let stream = TcpStream::connect(host).await.unwrap();
        let (socket, _) = tokio_tungstenite::client_async(&address, stream).await.unwrap();
        let session = Value::Null;
        let mut browser = Self {
            process,
            _profile: profile,
            socket,
            session,
            next: 0,
            loaded: false,
            complaints: Vec::new(),
        };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" })).await;
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        browser.session = browser.call("Target.attachToTarget", attach).await["sessionId"].take();
        for domain in ["Page", "Runtime", "Log"] {
            browser.call(&format!("{domain}.enable"), json!({})).await;
        }
        browser.window(1280, 900, "light").await;
        browser.loaded = false;
        browser.call("Page.navigate", json!({ "url": url })).await;
        while !browser.loaded {
            browser.message().await;
        }
        browser
    }

    /// Size of the window in CSS pixels, and the system's colours: `light` or `dark`.
    pub(crate) async fn window(&mut self, width: u32, height: u32, colours: &str) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", size).await;
        let features = json!([{ "name": "prefers-color-scheme", "value": colours }]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": features })).await;
    }

    /// The value of a script's expression; a promise's once it is there.
    pub(crate) async fn value(&mut self, expression: &str) -> Value {
        let ask = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let mut answer = self.call("Runtime.evaluate", ask).await;
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {}", answer["exceptionDetails"]);
        answer["result"]["value"].take()
    }

    /// The value as text.
    pub(crate) async fn text(&mut self, expression: &str) -> String {
        let value = self.value(expression).await;
        value.as_str().unwrap_or_else(|| panic!("{expression} is {value}")).to_owned()
    }

    /// Returns once `condition` holds.
    pub(crate) async fn until(&mut self, condition: &str) {
        let wait = format!(
            "new Promise(done => {{ const look = () => ({condition}) ? done(true) : setTimeout(look, 20); look(); }})"
        );
        // less than the limit on a message, so that the page can still be asked what it shows
        let met = tokio::time::timeout(LIMIT / 2, self.value(&wait)).await.is_ok();
        if !met {
            let page = self.text("document.body.innerText").await;
            panic!("{condition} did not come true; complaints {:?}; the page says\n{page}", self.complaints);
        }
    }

    /// The whole page as a PNG file at `path`, for people to look at.
    pub(crate) async fn picture(&mut self, path: &Path) {
        let answer = self.call("Page.captureScreenshot", json!({ "captureBeyondViewport": true })).await;
        let bytes = STANDARD.decode(answer["data"].as_str().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    async fn call(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let mut message = json!({ "id": self.next, "method": method, "params": params });
        if self.session.is_string() {
            message["sessionId"] = self.session.clone();
        }
        self.socket.send(Message::text(message.to_string())).await.unwrap();
        loop {
            let mut message = self.message().await;
            if message["id"] == self.next {
                assert!(message["error"].is_null(), "{method}: {}", message["error"]);
                return message["result"].take();
            }
        }
    }

    /// The next message of the browser, noted if it is an event that matters.
    async fn message(&mut self) -> Value {
        loop {
            let next = tokio::time::timeout(LIMIT, self.socket.next()).await;
            let message =
                next.expect("the browser answers in time").expect("the browser is still there").unwrap();
            let Message::Text(text) = message else { continue };
            let message: Value = serde_json::from_str(&text).unwrap();
            self.loaded |= message["method"] == "Page.loadEventFired";
            self.complaints.extend(complaint(&message));
            return message;
        }
    }
}

/// What an event says is wrong with the page. Refusals of the server are for the page to show.
fn complaint(event: &Value) -> Option<String> {
    let (params, entry) = (&event["params"], &event["params"]["entry"]);
    match event["method"].as_str()? {
        "Runtime.exceptionThrown" => Some(params["exceptionDetails"].to_string()),
        "Log.entryAdded" if entry["level"] == "error" && entry["source"] != "network" => {
            Some(entry["text"].to_string())
        }
        _ => None,
    }
}
