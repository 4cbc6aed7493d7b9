//! Queue, deadlines, clients that leave, tokens, limits, and what the server says of itself meanwhile.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod rig;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use gr00t_serve::http::HttpLimits;
use gr00t_serve::service::Limits;
use rig::{Rig, with};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn queue_of(queue: usize) -> Limits {
    Limits { queue, ..Limits::default() }
}

#[tokio::test]
async fn until_it_is_warm_only_health_is_well() {
    let rig = Rig::starting(Limits::default(), HttpLimits::default(), None);
    rig.service.set_phase("Loading weights: 40%");
    let health = rig.get("/health").await;
    assert_eq!((health.status, &health.json["status"]), (200, &"starting".into()));
    assert_eq!(health.json["phase"], "Loading weights: 40%");
    for path in ["/info", "/v1/models", "/demo"] {
        assert_eq!(rig.get(path).await.status, 503, "{path}");
    }
    assert_eq!(rig.predict(&rig.body).await.status, 503);
    rig.app.set_about(gr00t_serve::about::About::default());
    rig.service.open();
    assert_eq!(rig.get("/health").await.json["status"], "ok");
    for path in ["/info", "/v1/models", "/demo"] {
        assert_eq!(rig.get(path).await.status, 200, "{path}");
    }
    rig.service.stop();
    assert_eq!(rig.predict(&rig.body).await.status, 503);
    assert_eq!(rig.get("/health").await.json["status"], "stopping");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn beyond_the_queue_is_429_and_the_rest_is_answered() {
    let rig = Arc::new(Rig::with(queue_of(1), HttpLimits::default(), None));
    rig.model.close();
    let ask = || {
        let rig = Arc::clone(&rig);
        tokio::spawn(async move { rig.predict(&rig.body).await.status })
    };
    let first = ask();
    rig.entered(1).await;
    let second = ask();
    while rig.service.in_flight() < 2 {
        tokio::task::yield_now().await;
    }
    let third = rig.predict(&rig.body).await;
    assert_eq!(third.status, 429, "{}", third.text);
    assert!(third.text.contains("overloaded") && third.headers.contains_key("retry-after"));
    // the device is busy all the while
    assert_eq!(rig.get("/health").await.json["status"], "ok");
    assert_eq!(rig.get("/metrics").await.status, 200);
    assert_eq!(rig.get("/").await.status, 200);
    rig.model.open();
    assert_eq!((first.await.unwrap(), second.await.unwrap()), (200, 200));
    assert_eq!(rig.predict(&rig.body).await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_left_while_waiting_never_reaches_the_device() {
    let rig = Arc::new(Rig::with(queue_of(4), HttpLimits::default(), None));
    rig.model.close();
    let ask = || {
        let rig = Arc::clone(&rig);
        tokio::spawn(async move { rig.predict(&rig.body).await.status })
    };
    let first = ask();
    rig.entered(1).await;
    let second = ask();
    while rig.service.in_flight() < 2 {
        tokio::task::yield_now().await;
    }
    second.abort();
    assert!(second.await.unwrap_err().is_cancelled());
    rig.model.open();
    assert_eq!(first.await.unwrap(), 200);
    assert!(rig.service.idle(Duration::from_mins(1)).await);
    assert_eq!(rig.model.entered.load(Ordering::SeqCst), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_takes_too_long_is_504_and_the_next_is_answered() {
    let limits = Limits { deadline: Duration::from_millis(200), ..Limits::default() };
    let rig = Rig::with(limits, HttpLimits::default(), None);
    rig.model.close();
    let answer = rig.predict(&rig.body).await;
    assert_eq!(answer.status, 504, "{}", answer.text);
    rig.model.open();
    assert!(rig.service.idle(Duration::from_mins(1)).await);
    let slow = Rig::new();
    assert_eq!(slow.predict(&slow.body).await.status, 200);
}

#[tokio::test]
async fn after_a_device_error_it_is_not_ready_until_a_prediction_succeeds() {
    let rig = Rig::new();
    rig.model.failures.store(1, Ordering::SeqCst);
    let answer = rig.predict(&rig.body).await;
    assert_eq!(answer.status, 500);
    assert!(answer.json["detail"].as_str().unwrap().starts_with("ModelError: "), "{}", answer.text);
    assert_eq!(rig.get("/health").await.json["status"], "failed");
    assert_eq!(rig.get("/v1/models").await.status, 503);
    assert_eq!(rig.predict(&rig.body).await.status, 200);
    assert_eq!(rig.get("/v1/models").await.status, 200);
}

/// What a client sends cannot take the server off.
#[tokio::test]
async fn inputs_that_no_model_can_compute_are_the_clients_fault() {
    let rig = Rig::new();
    let noise =
        |value: f64| with(&with(&rig.body, "seed", Value::Null), "noise", json!(vec![[value; 32]; 16]));
    let answer = rig.predict(&noise(3e38)).await;
    assert_eq!(answer.status, 400, "{}", answer.text);
    assert!(answer.text.contains("noise: values up to 3e38 (normalised) are beyond"), "{}", answer.text);
    assert_eq!(rig.get("/v1/models").await.status, 200);
    assert_eq!(rig.predict(&noise(1e12)).await.status, 200);
}

#[tokio::test]
async fn with_a_token_only_probes_and_the_page_are_open() {
    let rig = Rig::with(Limits::default(), HttpLimits::default(), Some("s3cret"));
    for path in ["/health", "/v1/models", "/", "/openapi.json"] {
        assert_eq!(rig.get(path).await.status, 200, "{path}");
    }
    for path in ["/info", "/demo", "/metrics"] {
        assert_eq!(rig.get(path).await.status, 401, "{path}");
    }
    let post = |header: &str| {
        let request = Request::post("/predict").header("authorization", header);
        request.body(Body::from(rig.body.to_string())).unwrap()
    };
    assert_eq!(rig.predict(&rig.body).await.status, 401);
    assert_eq!(rig.send(post("Bearer wrong")).await.status, 401);
    assert_eq!(rig.send(post("Bearer s3cret")).await.status, 200);
}

#[tokio::test]
async fn pages_of_other_sites_are_refused_whatever_they_call_their_body() {
    let rig = Rig::new();
    let post = async |origin: Option<&str>, host: &str| {
        let mut request = Request::post("/predict").header("host", host).header("content-type", "text/plain");
        if let Some(origin) = origin {
            request = request.header("origin", origin);
        }
        rig.send(request.body(Body::from(rig.body.to_string())).unwrap()).await.status
    };
    assert_eq!(post(None, "robot-pc:8000").await, 200);
    assert_eq!(post(Some("http://127.0.0.1:8000"), "127.0.0.1:8000").await, 200);
    assert_eq!(post(Some("http://evil.example"), "127.0.0.1:8000").await, 403);
    // a name of the attacker's that leads here
    assert_eq!(post(Some("http://evil.example:8000"), "evil.example:8000").await, 403);
    assert_eq!(post(Some("null"), "127.0.0.1:8000").await, 403);
}

#[tokio::test]
async fn bodies_too_large_or_too_slow_are_refused_and_32_mib_are_read() {
    let rig = Rig::new();
    // not the form, but read to the end
    assert_eq!(rig.post("/predict", vec![b' '; 33 << 20]).await.status, 422);
    let http = HttpLimits { body: 1000, body_time: Duration::from_millis(50), ..HttpLimits::default() };
    let rig = Rig::with(Limits::default(), http, None);
    assert_eq!(rig.post("/predict", vec![b' '; 1001]).await.status, 413);
    assert_eq!(rig.post("/act", vec![b' '; 1001]).await.status, 413);
    assert_eq!(rig.post("/predict", Body::new(Never)).await.status, 408);
}

/// A body that never arrives.
struct Never;

impl hyper::body::Body for Never {
    type Data = axum::body::Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<hyper::body::Frame<Self::Data>, Self::Error>>> {
        std::task::Poll::Pending
    }
}

#[tokio::test]
async fn an_encoded_body_is_said_to_be_one() {
    let rig = Rig::new();
    let send = async |coding: &str| {
        let request = Request::post("/predict").header("content-encoding", coding);
        rig.send(request.body(Body::from(rig.body.to_string())).unwrap()).await
    };
    let answer = send("gzip").await;
    assert_eq!(answer.status, 415);
    assert!(answer.text.contains("content-encoding gzip is not read"), "{}", answer.text);
    assert_eq!(send("identity").await.status, 200);
}

/// A body of which `size` bytes arrive, and no more; says when they were read.
struct Stuck(usize, Arc<std::sync::atomic::AtomicUsize>);

impl hyper::body::Body for Stuck {
    type Data = axum::body::Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<hyper::body::Frame<Self::Data>, Self::Error>>> {
        let size = std::mem::take(&mut self.0);
        if size == 0 {
            self.1.fetch_add(1, Ordering::SeqCst);
            return std::task::Poll::Pending;
        }
        std::task::Poll::Ready(Some(Ok(hyper::body::Frame::data(vec![b' '; size].into()))))
    }
}

#[tokio::test]
async fn bodies_that_do_not_end_leave_room_for_small_ones() {
    const BODY: usize = 2 << 20;
    let http = HttpLimits { body: BODY, body_time: Duration::from_hours(1), ..HttpLimits::default() };
    let rig = Arc::new(Rig::with(Limits::default(), http, None));
    let read = Arc::default();
    // a mebibyte of each is not counted, and the room is four bodies
    let stuck: Vec<_> = (0..8)
        .map(|_| {
            let (rig, body) = (Arc::clone(&rig), Stuck(BODY, Arc::clone(&read)));
            tokio::spawn(async move { rig.post("/predict", Body::new(body)).await.status })
        })
        .collect();
    while read.load(Ordering::SeqCst) < stuck.len() {
        tokio::task::yield_now().await;
    }
    let late = rig.post("/act", vec![b' '; BODY]).await;
    assert_eq!(late.status, 429, "{}", late.text);
    assert!(late.headers.contains_key("retry-after"));
    assert_eq!(rig.predict(&rig.body).await.status, 200);
    for task in stuck {
        task.abort();
        let _ = task.await;
    }
    assert_eq!(rig.post("/predict", vec![b' '; BODY]).await.status, 422);
}

/// A server on loopback, and its end.
async fn listening(rig: &Rig) -> (std::net::SocketAddr, tokio::task::JoinHandle<()>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (address, tokio::spawn(gr00t_serve::http::accept(rig.app.clone(), listener)))
}

#[tokio::test]
async fn a_client_that_never_reads_loses_its_place() {
    let http = HttpLimits { connections: 1, write: Duration::from_millis(50), ..HttpLimits::default() };
    let rig = Rig::with(Limits::default(), http, None);
    let (address, _server) = listening(&rig).await;
    let mut greedy = tokio::net::TcpStream::connect(address).await.unwrap();
    let flood = tokio::spawn(async move {
        while greedy.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.is_ok() {}
        // its place is free, though it is still there
        std::future::pending::<()>().await;
        drop(greedy);
    });
    let mut good = tokio::net::TcpStream::connect(address).await.unwrap();
    good.write_all(b"GET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    good.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    flood.abort();
}

#[tokio::test]
async fn half_requests_do_not_keep_a_server_that_stops() {
    let hour = Duration::from_hours(1);
    let http = HttpLimits { head: hour, body_time: hour, ..HttpLimits::default() };
    let rig = Rig::with(Limits::default(), http, None);
    let (address, server) = listening(&rig).await;
    let mut halves = Vec::new();
    for half in [
        "",
        "G",
        "GET /health HTTP/1.1\r\n",
        "POST /predict HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n{",
    ] {
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        stream.write_all(half.as_bytes()).await.unwrap();
        halves.push(stream);
    }
    rig.service.stop();
    tokio::time::timeout(Duration::from_mins(1), server).await.unwrap().unwrap();
}

#[tokio::test]
async fn the_description_names_every_route_and_metrics_count() {
    let rig = Rig::new();
    let described = rig.get("/openapi.json").await.json;
    for (path, methods) in described["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            let request = Request::builder().method(method.to_uppercase().as_str()).uri(path);
            let status = rig.send(request.body(Body::empty()).unwrap()).await.status;
            assert!(status != 404 && status != 405, "{method} {path}: {status}");
        }
    }
    assert_eq!(described["paths"].as_object().unwrap().len(), 9);
    assert_eq!(rig.get("/nothing").await.status, 404);
    assert_eq!(rig.get("/predict").await.status, 405);
    assert_eq!(rig.predict(&rig.body).await.status, 200);
    let metrics = rig.get("/metrics").await.text;
    for line in [
        "gr00t_predictions_total 1",
        "gr00t_errors_total{kind=\"unprocessable\"} 2",
        "gr00t_queue_depth 0",
        "gr00t_stage_seconds_count{stage=\"denoise\"} 1",
        "gr00t_requests_total{protocol=\"http\",route=\"other\"} 1",
    ] {
        assert!(metrics.contains(line), "{line} is not in\n{metrics}");
    }
}

#[tokio::test]
async fn a_clients_request_id_comes_back_unless_it_is_unfit() {
    let rig = Rig::new();
    let ask = async |id: &str| {
        let request = Request::get("/health").header("x-request-id", id).body(Body::empty()).unwrap();
        rig.send(request).await.headers["x-request-id"].to_str().unwrap().to_owned()
    };
    assert_eq!(ask("robot-7").await, "robot-7");
    assert_ne!(ask(&"x".repeat(65)).await, "x".repeat(65));
    assert_ne!(ask("a b").await, "a b");
}
