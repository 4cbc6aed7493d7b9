//! A small LeRobot dataset, written as a test needs it: two episodes of a six-joint arm with one camera.

use std::fs;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::column::writer::ColumnWriter;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use serde_json::json;

pub(crate) const EPISODES: usize = 2;
pub(crate) const STEPS: usize = 40;
pub(crate) const JOINTS: usize = 6;
pub(crate) const FPS: usize = 10;
pub(crate) const SIDE: u32 = 64;
pub(crate) const TASKS: [&str; 2] = ["pick up the block", "put the block down"];

/// The recorded state of a joint; the recorded action is that of the next step.
pub(crate) fn joint(episode: usize, step: usize, joint: usize) -> f32 {
    ((step as f32) * 0.1 + joint as f32 + episode as f32 * 0.5).sin()
}

/// The camera's picture of a step; no two are equal.
pub(crate) fn picture(episode: usize, step: usize) -> image::RgbImage {
    image::RgbImage::from_fn(SIDE, SIDE, |x, y| {
        let place = (x as usize * 3 + y as usize * 5 + step * 11 + episode * 40) % 256;
        image::Rgb([place as u8, (step * 6) as u8, (y * 4) as u8])
    })
}

/// Writes everything but frames and statistics to `folder`.
pub(crate) fn write(folder: &Path) {
    let meta = folder.join("meta");
    fs::create_dir_all(&meta).unwrap();
    fs::create_dir_all(folder.join("data/chunk-000")).unwrap();
    let vector = json!({"dtype": "float32", "shape": [JOINTS], "names": null});
    let info = json!({
        "codebase_version": "v2.1", "fps": FPS, "chunks_size": 1000, "total_episodes": EPISODES,
        "data_path": "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet",
        "video_path": "videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4",
        "features": {
            "observation.state": vector, "action": vector,
            "observation.images.webcam":
                {"dtype": "video", "shape": [SIDE, SIDE, 3], "names": ["height", "width", "channels"]},
        },
    });
    let parts = json!({"single_arm": {"start": 0, "end": 5}, "gripper": {"start": 5, "end": 6}});
    let modality = json!({
        "state": parts, "action": parts,
        "video": {"webcam": {"original_key": "observation.images.webcam"}},
        "annotation": {"human.task_description": {"original_key": "task_index"}},
    });
    fs::write(meta.join("info.json"), info.to_string()).unwrap();
    fs::write(meta.join("modality.json"), modality.to_string()).unwrap();
    let lines = |all: Vec<serde_json::Value>| {
        let lines: Vec<String> = all.iter().map(ToString::to_string).collect();
        lines.join("\n")
    };
    let tasks = TASKS.iter().enumerate().map(|(n, task)| json!({"task_index": n, "task": task})).collect();
    fs::write(meta.join("tasks.jsonl"), lines(tasks)).unwrap();
    let episodes =
        (0..EPISODES).map(|n| json!({"episode_index": n, "tasks": TASKS, "length": STEPS})).collect();
    fs::write(meta.join("episodes.jsonl"), lines(episodes)).unwrap();
    for episode in 0..EPISODES {
        write_episode(&data_file(folder, episode), episode);
    }
}

/// An episode's parquet file.
pub(crate) fn data_file(folder: &Path, episode: usize) -> PathBuf {
    folder.join(format!("data/chunk-000/episode_{episode:06}.parquet"))
}

/// Nested as pandas nests lists.
const SCHEMA: &str = "message schema {
    optional group observation.state (LIST) { repeated group list { optional float element; } }
    optional group action (LIST) { repeated group list { optional float element; } }
    optional double timestamp;
    optional int64 task_index;
}";

fn write_episode(path: &Path, episode: usize) {
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let schema = Arc::new(parse_message_type(SCHEMA).unwrap());
    let mut writer =
        SerializedFileWriter::new(File::create(path).unwrap(), schema, Arc::new(properties)).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let values = |later: usize| -> Vec<f32> {
        (0..STEPS * JOINTS).map(|i| joint(episode, i / JOINTS + later, i % JOINTS)).collect()
    };
    let mut lists = [values(0), values(1)].into_iter();
    while let Some(mut column) = group.next_column().unwrap() {
        match column.untyped() {
            ColumnWriter::FloatColumnWriter(list) => {
                let starts: Vec<i16> = (0..STEPS * JOINTS).map(|i| i16::from(i % JOINTS != 0)).collect();
                let values = lists.next().unwrap();
                list.write_batch(&values, Some(&vec![3; values.len()]), Some(&starts)).unwrap();
            }
            ColumnWriter::DoubleColumnWriter(times) => {
                let values: Vec<f64> = (0..STEPS).map(|step| step as f64 / FPS as f64).collect();
                times.write_batch(&values, Some(&[1; STEPS]), None).unwrap();
            }
            ColumnWriter::Int64ColumnWriter(tasks) => {
                tasks.write_batch(&[episode as i64; STEPS], Some(&[1; STEPS]), None).unwrap();
            }
            _ => panic!("a column of another type"),
        }
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
}

/// Frames as still images, one per step.
pub(crate) fn write_stills(folder: &Path) {
    for episode in 0..EPISODES {
        let stills = folder.join(format!("images/observation.images.webcam/episode_{episode:06}"));
        fs::create_dir_all(&stills).unwrap();
        for step in 0..STEPS {
            picture(episode, step).save(stills.join(format!("frame_{step:06}.png"))).unwrap();
        }
    }
}

/// Frames as videos that lose nothing. False where there is no ffmpeg to write them.
pub(crate) fn write_videos(folder: &Path) -> bool {
    let videos = folder.join("videos/chunk-000/observation.images.webcam");
    fs::create_dir_all(&videos).unwrap();
    for episode in 0..EPISODES {
        let size = format!("{SIDE}x{SIDE}");
        let spawned = Command::new("ffmpeg")
            .args(["-v", "error", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", &size, "-r", &FPS.to_string()])
            .args(["-i", "pipe:0", "-c:v", "png", "-pix_fmt", "rgb24"])
            .arg(videos.join(format!("episode_{episode:06}.mp4")))
            .stdin(Stdio::piped())
            .spawn();
        let Ok(mut ffmpeg) = spawned else { return false };
        let mut pipe = ffmpeg.stdin.take().unwrap();
        for step in 0..STEPS {
            pipe.write_all(picture(episode, step).as_raw()).unwrap();
        }
        drop(pipe);
        assert!(ffmpeg.wait().unwrap().success());
    }
    true
}
