//! The page at `/` in a headless Chromium, against a server on the mini model. Says so where there is no Chromium.
//! Pictures of the page are left in cargo's folder for tests (`target/tmp/page-*.png`).
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod browser;
#[path = "../rig/mod.rs"]
mod rig;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use browser::{Browser, program};
use gr00t_serve::about::About;
use gr00t_serve::http::{HttpLimits, accept};
use gr00t_serve::service::{Limits, Request};
use rig::Rig;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// Joints of GR1's arms and hands: a curve each.
const JOINTS: usize = 26;
/// How far off the reference of one group is made to be.
const OFF: f64 = 0.25;
const READY: &str = "$('status').textContent === 'ready' && !$('run').disabled";
const DRAWN: &str = "document.querySelectorAll('#plots:not(.stale) svg').length === 4 && !running";
const REFUSED: &str = "!$('banner').hidden && !running";
const HEADLINE: &str = "$('banner').querySelector('strong').textContent";

/// The browser, unless this machine has none.
fn chromium() -> Option<PathBuf> {
    let found = program();
    if found.is_none() {
        println!("skipped: no Chromium in PATH, and GR00T_CHROMIUM is not set");
    }
    found
}

/// Where a picture of the page goes.
fn picture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("page-{name}.png"))
}

/// Where `rig` is served from now on.
async fn served(rig: &Rig) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(accept(rig.app.clone(), listener));
    format!("http://{address}")
}

/// A ready server whose demo expects its own answer, the right arm `OFF` from it.
async fn ready() -> Rig {
    let rig = Rig::starting(Limits::default(), HttpLimits::default(), None);
    rig.service.open();
    let mut expected = rig.predict(&rig.body).await.json["actions"].take();
    for value in
        expected["right_arm"].as_array_mut().unwrap().iter_mut().flat_map(|s| s.as_array_mut().unwrap())
    {
        *value = (value.as_f64().unwrap() + OFF).into();
    }
    rig.app.set_about(about(json!({ "request": rig.body, "expected": { "actions": expected } })));
    rig
}

fn about(demo: Value) -> About {
    let details = json!({
        "model": "GR00T-N1.5-synthetic", "data_config": rig::DATA_CONFIG, "policy": "mixed_dit",
        "device_facts": { "description": "soft" }, "weights": { "source": "synthetic weights" },
    });
    About { model: "mini".into(), demo, details: details.as_object().unwrap().clone(), ..About::default() }
}

async fn count(browser: &mut Browser, selector: &str) -> usize {
    let count = browser.value(&format!("document.querySelectorAll('{selector}').length")).await;
    count.as_u64().unwrap() as usize
}

async fn run(browser: &mut Browser) {
    browser.value("$('run').click()").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_demo_is_drawn_beside_the_reference() {
    let Some(chromium) = chromium() else { return };
    let rig = ready().await;
    let url = served(&rig).await;
    let mut browser = Browser::open(&chromium, &format!("{url}/?run")).await;
    browser.until(DRAWN).await;

    assert_eq!(count(&mut browser, "#plots .curve").await, JOINTS);
    assert_eq!(count(&mut browser, "#plots .expected").await, JOINTS);
    let difference =
        |key: &str| format!("document.querySelector('[data-key={key}] .difference').textContent");
    let left_arm = browser.text(&difference("left_arm")).await;
    assert!(left_arm.ends_with("max |Δ| 0.0e+0"), "{left_arm}");
    let right_arm = browser.text(&difference("right_arm")).await;
    assert!(right_arm.starts_with("PCC 1.000000") && right_arm.ends_with("max |Δ| 2.5e-1"), "{right_arm}");
    let bars = browser.text("$('bars').innerText").await;
    for part in ["encode", "vision", "llm", "adapter", "denoise", "in the server", "seen by the browser"] {
        assert!(bars.contains(part), "no {part} in {bars}");
    }

    // the command that is copied asks the same
    browser.value("navigator.clipboard.writeText = async text => { window.taken = text; }").await;
    browser.value("$('copy').click()").await;
    browser.until("$('copied').textContent === 'Copied.'").await;
    let command = browser.text("window.taken").await;
    assert!(command.starts_with(&format!("curl -sS {url}/predict ")), "{command}");
    let body: Value = serde_json::from_str(command.lines().nth(1).unwrap()).unwrap();
    let again = rig.predict(&body).await;
    assert_eq!(again.json["actions"], browser.value("shown.reply.actions").await);

    // in every form nothing hangs over the edge
    for (width, colours, name) in [(1280, "light", "wide"), (1280, "dark", "dark"), (380, "light", "narrow")]
    {
        browser.window(width, 900, colours).await;
        browser
            .until(&format!("document.querySelector('#plots svg').viewBox.baseVal.width <= {width}"))
            .await;
        let over = browser.value("document.documentElement.scrollWidth - innerWidth").await;
        assert!(over.as_i64().unwrap() <= 0, "{name}: {over} px too wide");
        browser.picture(&picture(name)).await;
    }
    assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
}

/// A file named `name` dropped on the camera, its bytes the promise `blob`.
fn dropped(name: &str, blob: &str) -> String {
    format!(
        "({blob}).then(blob => {{ const carried = new DataTransfer(); carried.items.add(new File([blob], '{name}')); \
         document.querySelector('.camera').dispatchEvent(new DragEvent('drop', {{ dataTransfer: carried, bubbles: true, cancelable: true }})); }})"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_dropped_and_typed_is_what_is_asked() {
    let Some(chromium) = chromium() else { return };
    let rig = ready().await;
    let mut browser = Browser::open(&chromium, &served(&rig).await).await;
    browser.until(READY).await;
    assert_eq!(count(&mut browser, "#plots svg").await, 0, "nothing runs unless asked to");
    run(&mut browser).await;
    browser.until(DRAWN).await;
    let points = "document.querySelector('#plots .curve').getAttribute('points')";
    let demo = browser.text(points).await;

    let half = "(() => { const canvas = document.createElement('canvas'); canvas.width = 320; canvas.height = 200; \
                   canvas.getContext('2d').fillRect(0, 0, 160, 200); return new Promise(done => canvas.toBlob(done)); })()";
    browser.value(&dropped("half.png", half)).await;
    browser.until("document.querySelector('.camera').innerText.includes('half.png, 320 × 200 px')").await;
    assert_eq!(count(&mut browser, "#plots.stale").await, 1, "the old answer is shown as such");
    run(&mut browser).await;
    browser.until(DRAWN).await;
    assert_eq!(browser.value("shown.reply.images.ego_view.received_hw").await, json!([200, 320]));
    assert_eq!(count(&mut browser, "#plots .curve").await, JOINTS);
    assert_eq!(count(&mut browser, "#plots .expected").await, 0, "the reference knows the demo alone");
    assert_ne!(browser.text(points).await, demo);

    browser.value(&dropped("notes.png", "Promise.resolve(new Blob(['not a picture']))")).await;
    browser.until("document.querySelector('.camera').innerText.includes('notes.png, not a picture')").await;
    run(&mut browser).await;
    browser.until(REFUSED).await;
    assert_eq!(browser.text(HEADLINE).await, "The observation does not fit this robot");
    let lines = browser.text("$('banner').innerText").await;
    assert!(lines.contains("image ego_view: "), "{lines}");
    assert_eq!(count(&mut browser, ".camera.wrong").await, 1);
    browser.picture(&picture("refused")).await;

    browser.value("$('reset').click()").await;
    let asked = rig.model.entered.load(Ordering::SeqCst);
    browser
        .value("document.querySelector('[data-key=left_hand] input').value = '0,5'; $('run').click()")
        .await;
    browser.until(REFUSED).await;
    let lines = browser.text("$('banner').innerText").await;
    assert!(lines.contains("state left_hand: joint 0 is not a number"), "{lines}");
    assert_eq!(count(&mut browser, ".joints input.wrong").await, 1);
    assert_eq!(rig.model.entered.load(Ordering::SeqCst), asked, "it was sent all the same");

    browser.value("$('reset').click()").await;
    run(&mut browser).await;
    browser.until(&format!("{DRAWN} && $('banner').hidden")).await;
    assert_eq!(browser.text(points).await, demo);
    assert_eq!(count(&mut browser, "#plots .expected").await, JOINTS);
    assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_starts_is_locked_busy_broken_or_gone_is_said_to_be() {
    let Some(chromium) = chromium() else { return };
    let limits = Limits { queue: 0, ..Limits::default() };
    let rig = Arc::new(Rig::starting(limits, HttpLimits::default(), Some("s3cret")));
    rig.service.set_phase("Loading weights: 40%|####      | 80/200");
    let mut browser = Browser::open(&chromium, &served(&rig).await).await;
    browser.until("$('banner').querySelector('progress')?.value === 40").await;
    assert_eq!(browser.text(HEADLINE).await, "The server is starting");
    assert_eq!(browser.value("$('run').disabled").await, true);
    browser.picture(&picture("starting")).await;

    rig.app.set_about(about(json!({ "request": rig.body, "expected": { "actions": {} } })));
    rig.service.open();
    for token in ["", "wrong"] {
        browser.until("!$('gate').hidden && $('status').textContent === 'locked'").await;
        assert_eq!(browser.text(HEADLINE).await, "This server wants a token", "after {token:?}");
        browser
            .value(&format!(
                "$('status').textContent = ''; $('token').value = '{token}'; $('unlock').click()"
            ))
            .await;
    }
    browser.until("$('status').textContent === 'locked'").await;
    browser.picture(&picture("locked")).await;
    browser.value("$('token').value = 's3cret'; $('unlock').click()").await;
    browser.until(READY).await;

    rig.model.close();
    let held = {
        let rig = Arc::clone(&rig);
        let (observation, _) = gr00t_serve::demo::observation(&rig.service.robot().unwrap()).unwrap();
        tokio::spawn(async move { rig.service.predict(Request::new(observation)).await.unwrap() })
    };
    rig.entered(1).await;
    run(&mut browser).await;
    browser.until(REFUSED).await;
    assert_eq!(browser.text(HEADLINE).await, "The server is busy");
    browser.picture(&picture("busy")).await;
    rig.model.open();
    held.await.unwrap();

    rig.model.failures.store(1, Ordering::SeqCst);
    run(&mut browser).await;
    browser.until(&format!("{HEADLINE} === 'The model or the device failed' && !running")).await;

    rig.service.stop();
    run(&mut browser).await;
    browser
        .until(&format!(
            "{HEADLINE} === 'The server does not answer' || {HEADLINE} === 'The server is not ready'"
        ))
        .await;
    assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
}
