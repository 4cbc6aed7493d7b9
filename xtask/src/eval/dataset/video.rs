//! Camera frames of an episode: of its video, decoded by the `ffmpeg` on the machine, or of still images.
//!
//! GR00T's decoders take the frame whose begin is nearest to a step's time (`gr00t/utils/video.py`); so does this one.

use std::fs;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use gr00t_host::OneLine;
use gr00t_host::image::Frame;
use gr00t_host::read_capped;
use serde::Deserialize;

use super::meta::Info;

/// Largest side of a frame.
const MAX_SIDE: usize = 16384;
/// Largest still image.
const MAX_IMAGE_BYTES: u64 = 256 << 20;
/// Most of what a program says on standard error that is kept.
const MAX_MESSAGE: u64 = 64 << 10;

/// Where an episode's frames of one camera are.
#[derive(Debug)]
pub(super) enum Source {
    /// A video file.
    Video(PathBuf),
    /// `frame_000000.png` and so on in LeRobot's folder of frames that are not yet encoded; one per step.
    Stills(PathBuf),
}

impl Source {
    /// The camera's video; where there is none, its folder of still images.
    pub(super) fn find(folder: &Path, info: &Info, key: &str, episode: usize) -> Result<Self> {
        let video = info.video_file(episode, key).map(|file| folder.join(file));
        if let Ok(file) = &video
            && file.is_file()
        {
            return Ok(Self::Video(file.clone()));
        }
        let stills = folder.join("images").join(key).join(format!("episode_{episode:06}"));
        if stills.is_dir() {
            return Ok(Self::Stills(stills));
        }
        bail!("{}: no such video, and no folder {}", video?.display(), stills.display())
    }

    /// The frame nearest to each of `timestamps` (seconds).
    pub(super) fn nearest(&self, timestamps: &[f64], fps: f64) -> Result<Vec<Frame>> {
        match self {
            Self::Video(path) => decoded(path, timestamps, fps).with_context(|| path.display().to_string()),
            Self::Stills(folder) => timestamps.iter().map(|time| still(folder, time * fps)).collect(),
        }
    }
}

/// The still image of step `step`, rounded.
fn still(folder: &Path, step: f64) -> Result<Frame> {
    let path = folder.join(format!("frame_{:06}.png", step.round().max(0.0) as u64));
    let bytes = read_capped(&path, MAX_IMAGE_BYTES)?;
    Frame::decode(&bytes).with_context(|| path.display().to_string())
}

/// What `ffprobe` says of a video.
#[derive(Debug, Deserialize)]
struct Probe {
    streams: Vec<Size>,
    frames: Vec<ProbedFrame>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct Size {
    width: usize,
    height: usize,
}

#[derive(Debug, Deserialize)]
struct ProbedFrame {
    best_effort_timestamp_time: Option<String>,
}

fn decoded(path: &Path, timestamps: &[f64], fps: f64) -> Result<Vec<Frame>> {
    // Absolute and with its protocol, so that no name is taken for an option or an address.
    let mut file = std::ffi::OsString::from("file:");
    file.push(fs::canonicalize(path)?);
    let mut probe = Command::new("ffprobe");
    probe.args(["-v", "error", "-select_streams", "v:0", "-of", "json"]);
    probe.args(["-show_entries", "stream=width,height:frame=best_effort_timestamp_time", "-i"]).arg(&file);
    let mut text = Vec::new();
    run(probe, |out| Ok(out.read_to_end(&mut text).map(drop)?))?;
    let probe: Probe = serde_json::from_slice(&text).context("what ffprobe says")?;
    let Size { width, height } = *probe.streams.first().context("no video stream")?;
    if width == 0 || height == 0 || width.max(height) > MAX_SIDE {
        bail!("frames of {width}x{height}, wanted sides of 1 to {MAX_SIDE}");
    }
    let begins: Vec<f64> = probe.frames.iter().map(ProbedFrame::begin).collect::<Result<_>>()?;
    let wanted: Vec<usize> = timestamps.iter().map(|&t| nearest(&begins, t, fps)).collect::<Result<_>>()?;

    let mut decode = Command::new("ffmpeg");
    decode.args(["-v", "error", "-nostdin", "-noautorotate", "-i"]).arg(&file);
    decode.args([
        "-map",
        "0:v:0",
        "-fps_mode",
        "passthrough",
        "-f",
        "rawvideo",
        "-pix_fmt",
        "rgb24",
        "pipe:1",
    ]);
    let mut frames: Vec<Option<Frame>> = vec![None; wanted.len()];
    run(decode, |out| {
        let mut rgb = vec![0; width * height * 3];
        for number in 0..begins.len() {
            out.read_exact(&mut rgb).with_context(|| format!("frame {number} of {}", begins.len()))?;
            for (frame, _) in frames.iter_mut().zip(&wanted).filter(|(_, wanted)| **wanted == number) {
                *frame = Some(Frame::new(width, height, rgb.clone())?);
            }
        }
        let more = out.read(&mut rgb)?;
        if more > 0 {
            bail!("more frames than the {} that ffprobe saw", begins.len());
        }
        Ok(())
    })?;
    frames.into_iter().map(|frame| frame.context("a frame was not decoded")).collect()
}

impl ProbedFrame {
    fn begin(&self) -> Result<f64> {
        let text = self.best_effort_timestamp_time.as_deref().context("a frame without a time")?;
        text.parse().with_context(|| format!("a frame's time {text:?}"))
    }
}

/// The frame that begins nearest to `time`, the first of two. More than a frame away the video does not belong to the episode.
fn nearest(begins: &[f64], time: f64, fps: f64) -> Result<usize> {
    let distance = |begin: &f64| (begin - time).abs();
    let found = begins.iter().enumerate().min_by(|a, b| distance(a.1).total_cmp(&distance(b.1)));
    let (number, begin) = found.context("no frames")?;
    // Written so that NaN is not near.
    if distance(begin) <= 1.0 / fps {
        Ok(number)
    } else {
        bail!("the frame nearest to {time} s begins at {begin} s, more than a frame of {fps} per second away")
    }
}

/// Runs `command`, hands its output to `read`, and fails with what it says if it fails.
fn run(mut command: Command, read: impl FnOnce(&mut dyn Read) -> Result<()>) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("{name}, which decodes videos, cannot be started"))?;
    let errors = child.stderr.take();
    let said = std::thread::spawn(move || {
        let mut text = String::new();
        if let Some(mut errors) = errors {
            // What follows is read too, so that the program never waits for a reader.
            let _ = errors.by_ref().take(MAX_MESSAGE).read_to_string(&mut text);
            let _ = std::io::copy(&mut errors, &mut std::io::sink());
        }
        text
    });
    let outcome = match child.stdout.take() {
        Some(out) => {
            let mut out = BufReader::with_capacity(1 << 20, out);
            let outcome = read(&mut out);
            if outcome.is_err() {
                // A pipe that is closed in the middle would be one more failure, which hides this one.
                let _ = std::io::copy(&mut out, &mut std::io::sink());
            }
            outcome
        }
        None => Err(anyhow::anyhow!("{name} has no output")),
    };
    let status = child.wait().context(name.clone())?;
    let said = said.join().unwrap_or_default();
    if status.success() {
        return outcome.context(name);
    }
    let first = said.lines().next().unwrap_or("nothing on standard error");
    bail!("{name} failed ({status}): {}", OneLine(first.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_the_nearest_frames_is_taken() {
        let begins = [0.0, 0.05, 0.1];
        assert_eq!(nearest(&begins, 0.05, 20.0).unwrap(), 1);
        assert_eq!(nearest(&begins, 0.0249, 20.0).unwrap(), 0);
        assert_eq!(nearest(&[0.0, 1.0], 0.5, 2.0).unwrap(), 0);
        assert_eq!(nearest(&begins, 0.14, 20.0).unwrap(), 2);
    }

    #[test]
    fn a_video_that_ends_before_is_an_error() {
        let error = nearest(&[0.0, 0.05], 0.2, 20.0).unwrap_err().to_string();
        assert!(error.contains("nearest to 0.2 s begins at 0.05 s"), "{error}");
        assert!(nearest(&[0.0], f64::NAN, 20.0).is_err());
        assert!(nearest(&[], 0.0, 20.0).is_err());
    }

    #[test]
    fn a_program_that_fails_is_named_with_what_it_says() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo first >&2; echo second >&2; exit 3"]);
        let error = run(command, |_| Ok(())).unwrap_err().to_string();
        assert_eq!(error, "sh failed (exit status: 3): first");
        let mut command = Command::new("head");
        command.args(["-c", "4000000", "/dev/zero"]);
        let error = run(command, |_| bail!("what was read is wrong")).unwrap_err();
        assert_eq!(format!("{error:#}"), "head: what was read is wrong");
        let error = run(Command::new("no-such-program"), |_| Ok(())).unwrap_err().to_string();
        assert!(error.contains("no-such-program, which decodes videos, cannot be started"), "{error}");
    }
}
