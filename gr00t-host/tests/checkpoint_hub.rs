//! The hub's cache, and downloads into it from a server that this test runs on the loopback interface.
#![cfg(feature = "download")]
#![allow(clippy::unwrap_used)]

mod checkpoint_fixture;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use checkpoint_fixture::small_folder;
use gr00t_host::checkpoint::{Checkpoint, Hub, HubRepo, OpenOptions, WeightsSpec};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// What the server does wrong, for files whose name contains the text.
#[derive(Clone, Copy, Default)]
struct Faults {
    /// Cuts the connection after this many bytes of the body.
    cut: Option<(&'static str, usize)>,
    /// Announces another SHA-256.
    wrong_hash: Option<&'static str>,
    /// Answers 404.
    absent: Option<&'static str>,
    /// Ignores ranges.
    no_ranges: bool,
}

type Log = Arc<Mutex<Vec<String>>>;

/// A hub with one repository, `someone/model`: small files by git's hash, large ones by redirect and SHA-256.
struct Server {
    address: String,
    log: Log,
    faults: Arc<Mutex<Faults>>,
}

impl Server {
    fn start(files: BTreeMap<String, Vec<u8>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (log, faults) = (Log::default(), Arc::new(Mutex::new(Faults::default())));
        let server = Self { address, log: Arc::clone(&log), faults: Arc::clone(&faults) };
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let faults = *faults.lock().unwrap();
                // A client that goes away is the client's business.
                let _ = answer(stream, &files, faults, &log);
            }
        });
        server
    }

    /// A server of the files of `dir`.
    fn of_folder(dir: &Path) -> Self {
        let mut files = BTreeMap::new();
        let mut folders = vec![dir.to_path_buf()];
        while let Some(folder) = folders.pop() {
            for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let name = path.strip_prefix(dir).unwrap().to_str().unwrap().to_owned();
                    files.insert(name, fs::read(&path).unwrap());
                }
            }
        }
        Self::start(files)
    }

    fn set(&self, faults: Faults) {
        *self.faults.lock().unwrap() = faults;
    }

    fn hub(&self, cache: &Path, more: &[(&str, &str)]) -> Hub {
        let lookup = |name: &str| match name {
            "HF_HUB_CACHE" => Some(cache.to_str().unwrap().to_owned()),
            "HF_ENDPOINT" => Some(format!("{}/", self.address)),
            name => more.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()),
        };
        Hub::from_vars(lookup).unwrap()
    }

    fn requests(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }
}

fn sha256(bytes: &[u8]) -> String {
    use std::fmt::Write;
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

fn answer(
    stream: TcpStream,
    files: &BTreeMap<String, Vec<u8>>,
    faults: Faults,
    log: &Log,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut out = stream;
    let mut head = String::new();
    while reader.read_line(&mut head)? > 2 {}
    let lower = head.to_lowercase();
    let header = |name: &str| {
        lower.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned())
    };
    let range = header("range:");
    let mut request = head.lines().next().unwrap_or_default().trim_end_matches(" HTTP/1.1").to_owned();
    for (name, value) in [("range", &range), ("authorization", &header("authorization:"))] {
        if let Some(value) = value {
            request = format!("{request} [{name} {value}]");
        }
    }
    log.lock().unwrap().push(request);
    let (method, path) = head.split_once(' ').unwrap_or_default();
    let path = path.split(' ').next().unwrap_or_default();

    if path.starts_with("/api/models/someone/model/revision/") {
        let siblings: Vec<_> = files.keys().map(|name| serde_json::json!({ "rfilename": name })).collect();
        let body = serde_json::json!({ "sha": COMMIT, "siblings": siblings }).to_string();
        return write!(
            out,
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
    }
    let (storage, name) = match path.strip_prefix(&format!("/someone/model/resolve/{COMMIT}/")) {
        Some(name) => (false, name),
        None => (true, path.strip_prefix("/storage/").unwrap_or_default()),
    };
    let hits = |fault: Option<&str>| fault.is_some_and(|part| name.contains(part));
    let Some(bytes) = files.get(name).filter(|_| !hits(faults.absent)) else {
        return out.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    };
    if !storage && name.ends_with(".safetensors") {
        let hash = if hits(faults.wrong_hash) { "ab".repeat(32) } else { sha256(bytes) };
        let host = header("host:").unwrap_or_default();
        return write!(
            out,
            "HTTP/1.1 302 Found\r\nLocation: http://{host}/storage/{name}\r\nX-Linked-Etag: \"{hash}\"\r\n\
             X-Linked-Size: {}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            bytes.len()
        );
    }
    let etag = &sha256(bytes)[..40];
    let start = range.and_then(|range| range.trim_start_matches("bytes=").trim_end_matches('-').parse().ok());
    let (status, start) = match start.filter(|_| !faults.no_ranges) {
        Some(start) => ("206 Partial Content", start),
        None => ("200 OK", 0_usize),
    };
    let body = &bytes[start..];
    write!(
        out,
        "HTTP/1.1 {status}\r\nETag: W/\"{etag}\"\r\nContent-Length: {}\r\nContent-Range: bytes {start}-{}/{}\r\n\
         Connection: close\r\n\r\n",
        body.len(),
        bytes.len() - 1,
        bytes.len()
    )?;
    let sent = match faults.cut.filter(|(part, _)| name.contains(part)) {
        Some((_, at)) => &body[..at.min(body.len())],
        None => body,
    };
    if method == "HEAD" { Ok(()) } else { out.write_all(sent) }
}

fn repo() -> HubRepo {
    HubRepo::parse("someone/model").unwrap()
}

/// Files of the cache, links with their targets.
fn listing(cache: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![cache.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()) {
            if path.is_dir() && !path.is_symlink() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(cache).unwrap().display().to_string();
                let target = fs::read_link(&path).map(|t| format!(" -> {}", t.display())).unwrap_or_default();
                found.push(name + &target);
            }
        }
    }
    found.sort();
    found
}

struct Bench {
    _parent: TempDir,
    server: Server,
    cache: PathBuf,
}

fn bench() -> Bench {
    let parent = TempDir::new().unwrap();
    let server = Server::of_folder(&small_folder(parent.path()));
    let cache = parent.path().join("cache");
    Bench { _parent: parent, server, cache }
}

fn download(bench: &Bench) -> Result<PathBuf, String> {
    bench.server.hub(&bench.cache, &[]).download(&repo(), &|_, _, _| ()).map_err(|e| e.to_string())
}

#[test]
fn a_download_fills_the_cache_and_the_next_open_needs_no_network() {
    let bench = bench();
    let seen = Mutex::new(BTreeMap::new());
    let snapshot = bench
        .server
        .hub(&bench.cache, &[("HF_TOKEN", "secret")])
        .download(&repo(), &|file, done, size| {
            seen.lock().unwrap().insert(file.to_owned(), (done, size));
        })
        .unwrap();
    assert!(snapshot.ends_with(format!("models--someone--model/snapshots/{COMMIT}")));
    assert!(seen.into_inner().unwrap().values().all(|(done, size)| done == size));
    let requests = bench.server.requests();
    assert_eq!(requests[0], "GET /api/models/someone/model/revision/main [authorization bearer secret]");
    assert!(requests.iter().filter(|r| r.contains("/storage/")).all(|r| !r.contains("authorization")));

    let files = listing(&bench.cache);
    let ending = format!("snapshots/{COMMIT}/experiment_cfg/metadata.json -> ../../../blobs/");
    assert!(files.iter().any(|line| line.contains(&ending)), "{files:?}");
    assert!(files.iter().any(|line| line.ends_with("refs/main")), "{files:?}");
    assert!(!files.iter().any(|line| line.contains("incomplete") || line.contains("new-")), "{files:?}");

    let offline = bench.server.hub(&bench.cache, &[("HF_HUB_OFFLINE", "1")]);
    let options = OpenOptions::new().hub(offline.clone());
    let spec = WeightsSpec::Hub(repo());
    let checkpoint = Checkpoint::open(&spec, &options).unwrap();
    checkpoint.validate().unwrap();
    checkpoint.check(&|_, _| ()).unwrap();
    assert!(checkpoint.metadata_path().is_some());
    offline.download(&repo(), &|_, _, _| ()).unwrap();
    assert_eq!(bench.server.requests().len(), requests.len(), "no request after the download");
}

#[test]
fn a_cut_download_goes_on_where_it_stopped() {
    let bench = bench();
    bench.server.set(Faults { cut: Some(("00002", 1000)), ..Faults::default() });
    let error = download(&bench).unwrap_err();
    assert!(error.contains("cut off at 1000 of "), "{error}");
    let files = listing(&bench.cache);
    assert!(files.iter().any(|line| line.ends_with(".incomplete")), "{files:?}");
    assert!(!files.iter().any(|line| line.contains("snapshots") || line.contains("refs")), "{files:?}");

    bench.server.set(Faults::default());
    let snapshot = download(&bench).unwrap();
    let resumed = |r: &String| r.contains("00002") && r.ends_with("[range bytes=1000-]");
    assert!(bench.server.requests().iter().any(resumed), "{:?}", bench.server.requests());
    let spec = WeightsSpec::Path(snapshot);
    Checkpoint::open(&spec, &OpenOptions::new()).unwrap().validate().unwrap();
    assert!(!listing(&bench.cache).iter().any(|line| line.ends_with(".incomplete")));
}

#[test]
fn a_server_without_ranges_starts_the_file_over() {
    let bench = bench();
    bench.server.set(Faults { cut: Some(("00002", 1000)), ..Faults::default() });
    download(&bench).unwrap_err();
    bench.server.set(Faults { no_ranges: true, ..Faults::default() });
    download(&bench).unwrap();
}

#[test]
fn a_wrong_hash_is_refused_and_discarded() {
    let bench = bench();
    bench.server.set(Faults { wrong_hash: Some("00001"), ..Faults::default() });
    let error = download(&bench).unwrap_err();
    assert!(error.contains("SHA-256 is ") && error.contains(&"ab".repeat(32)), "{error}");
    let files = listing(&bench.cache);
    assert!(!files.iter().any(|line| line.contains("abab") || line.contains("snapshots")), "{files:?}");
}

#[test]
fn absent_files_and_repositories_are_named() {
    let bench = bench();
    bench.server.set(Faults { absent: Some("00003"), ..Faults::default() });
    let error = download(&bench).unwrap_err();
    assert!(error.contains("00003") && error.contains("status 404: no such"), "{error}");
    let hub = bench.server.hub(&bench.cache, &[]);
    let other = HubRepo::parse("someone/else@v1").unwrap();
    let error = hub.download(&other, &|_, _, _| ()).unwrap_err().to_string();
    assert!(error.starts_with("hub someone/else@v1: ") && error.contains("status 404"), "{error}");
}

#[test]
fn a_repository_of_another_model_is_refused_before_its_weights_are_fetched() {
    let serve = |files: &[(&str, &str)]| {
        let files = files.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec()));
        let parent = TempDir::new().unwrap();
        let cache = parent.path().join("cache");
        Bench { _parent: parent, server: Server::start(files.collect()), cache }
    };
    let bench = serve(&[("config.json", r#"{"model_type": "Gr00tN1d6"}"#), ("model.safetensors", "x")]);
    assert!(download(&bench).unwrap_err().contains("this is GR00T N1.6"));
    assert!(!bench.server.requests().iter().any(|request| request.contains("model.safetensors")));
    let bench = serve(&[("adapter_config.json", "{}"), ("adapter_model.safetensors", "x")]);
    assert!(download(&bench).unwrap_err().contains("a LoRA adapter (adapter_config.json)"));
    let bench = serve(&[("config.json", "{}"), ("pytorch_model.bin", "x")]);
    assert!(download(&bench).unwrap_err().contains("lacks config.json, model.safetensors or"));
}

#[test]
fn nothing_is_fetched_unless_asked_for_and_allowed() {
    let bench = bench();
    let hub = bench.server.hub(&bench.cache, &[("HF_HUB_OFFLINE", "true")]);
    let error = hub.locate(&repo()).unwrap_err().to_string();
    assert!(error.contains("not in the cache") && error.contains("no download was asked for"), "{error}");
    let error = hub.download(&repo(), &|_, _, _| ()).unwrap_err().to_string();
    assert!(error.contains("HF_HUB_OFFLINE forbids"), "{error}");
    assert!(bench.server.requests().is_empty());
    assert!(!bench.cache.exists());
}

#[test]
fn half_a_snapshot_is_refused_offline_and_completed_online() {
    let bench = bench();
    let snapshot = download(&bench).unwrap();
    let link = snapshot.join("model-00002-of-00003.safetensors");
    let shard = fs::canonicalize(&link).unwrap_or_else(|_| panic!("{:?}", listing(&bench.cache)));
    let mut partial = shard.clone().into_os_string();
    partial.push(".incomplete");
    fs::rename(&shard, &partial).unwrap();
    let hub = bench.server.hub(&bench.cache, &[]);
    let spec = WeightsSpec::Hub(repo());
    let error = Checkpoint::open(&spec, &OpenOptions::new().hub(hub.clone())).unwrap_err().to_string();
    assert!(error.contains("is a dangling link to ../../blobs/"), "{error}");
    assert!(error.contains(", unfinished download: blobs/"), "{error}");
    let options = OpenOptions::new().hub(hub).download(&|_, _, _| ());
    Checkpoint::open(&spec, &options).unwrap().validate().unwrap();
}

#[test]
fn the_check_finds_one_flipped_bit_in_a_downloaded_file() {
    let bench = bench();
    let snapshot = download(&bench).unwrap();
    let open = || Checkpoint::open(&WeightsSpec::Path(snapshot.clone()), &OpenOptions::new()).unwrap();
    let furthest = Mutex::new((0, 0));
    let note = |done, total| {
        let mut furthest = furthest.lock().unwrap();
        *furthest = (*furthest).max((done, total));
    };
    open().check(&note).unwrap();
    let (done, total) = furthest.into_inner().unwrap();
    assert!(done > 0 && done == total, "{done} of {total}");

    let shard = fs::canonicalize(snapshot.join("model-00002-of-00003.safetensors")).unwrap();
    let mut bytes = fs::read(&shard).unwrap();
    // The lowest mantissa bit of the last element: still a number.
    let at = bytes.len() - 2;
    bytes[at] ^= 1;
    fs::write(&shard, bytes).unwrap();
    let error = open().check(&|_, _| ()).unwrap_err().to_string();
    assert!(error.contains("model-00002-of-00003.safetensors has SHA-256 "), "{error}");
}

#[test]
fn a_damaged_reference_is_refused() {
    let bench = bench();
    let refs = bench.cache.join("models--someone--model/refs");
    fs::create_dir_all(&refs).unwrap();
    fs::write(refs.join("main"), "../../../etc").unwrap();
    let error = bench.server.hub(&bench.cache, &[]).locate(&repo()).unwrap_err().to_string();
    assert!(error.ends_with("refs/main is not a commit hash"), "{error}");
}

#[test]
fn the_token_is_not_printed() {
    let bench = bench();
    let hub = bench.server.hub(&bench.cache, &[("HF_TOKEN", "secret")]);
    assert!(!format!("{hub:?}").contains("secret"));
}

#[test]
fn the_cache_is_where_the_environment_says() {
    let located = |vars: &[(&str, &str)]| {
        let lookup = |name: &str| vars.iter().find(|(key, _)| *key == name).map(|(_, v)| (*v).to_owned());
        let hub = Hub::from_vars(lookup).map_err(|e| e.to_string())?;
        Ok::<_, String>(hub.locate(&repo()).unwrap_err().to_string())
    };
    for (vars, wanted) in [
        (
            &[("HF_HUB_CACHE", "/absent/c"), ("HF_HOME", "/absent/h"), ("HOME", "/absent/u")][..],
            "cache /absent/c,",
        ),
        (&[("HF_HUB_CACHE", ""), ("HF_HOME", "/absent/h"), ("HOME", "/absent/u")], "cache /absent/h/hub,"),
        (&[("HOME", "/absent/u")], "cache /absent/u/.cache/huggingface/hub,"),
    ] {
        let error = located(vars).unwrap();
        assert!(error.contains(wanted), "{error}");
    }
    assert!(located(&[]).unwrap_err().contains("none of HF_HUB_CACHE"));
}
