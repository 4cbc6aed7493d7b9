//! Checkpoint folders: written, opened, recognised, validated and checked.
#![allow(clippy::unwrap_used)]

mod checkpoint_fixture;

use std::fs;
use std::ops::ControlFlow::{Break, Continue};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use checkpoint_fixture::{edit_json, safetensors_of, small_config, small_folder};
use gr00t_host::checkpoint::{
    Checkpoint, OpenOptions, Part, Procedural, SafetensorsFile, TensorSource, WeightsSpec, expected_tensors,
    write_synthetic,
};
use gr00t_host::{Error, ModelConfig};
use half::bf16;
use serde_json::json;
use tempfile::TempDir;

fn open(path: &Path) -> Result<Checkpoint, Error> {
    Checkpoint::open(&WeightsSpec::Path(path.to_path_buf()), &OpenOptions::new())
}

#[track_caller]
fn assert_refused(path: &Path, wanted: &str) {
    let error = open(path).unwrap_err().to_string();
    assert!(error.contains(wanted), "{error:?} lacks {wanted:?}");
}

fn read(source: &dyn TensorSource, name: &str) -> Vec<u16> {
    let mut out = vec![bf16::ZERO; source.info(name).unwrap().elements()];
    source.read_bf16(name, 0, &mut out).unwrap();
    out.into_iter().map(bf16::to_bits).collect()
}

/// All tensors of [`small_config`] with seed 5, renamed and edited by `edit`, as one file at `path`.
fn write_single(path: &Path, edit: impl Fn(&str) -> Option<String>) {
    let weights = Procedural::new(&small_config(), 5);
    let tensors: Vec<_> = weights
        .names()
        .into_iter()
        .filter_map(|name| {
            let bytes = read(&weights, &name).into_iter().flat_map(u16::to_le_bytes).collect();
            Some((edit(&name)?, weights.info(&name).unwrap().shape, bytes))
        })
        .collect();
    let tensors: Vec<_> = tensors
        .iter()
        .map(|(n, s, b): &(String, Vec<usize>, Vec<u8>)| (&**n, "BF16", &**s, b.clone()))
        .collect();
    fs::write(path, safetensors_of(&tensors)).unwrap();
}

/// A folder with one weights file and the configs of [`small_config`].
fn single_folder(edit: impl Fn(&str) -> Option<String>) -> TempDir {
    let dir = TempDir::new().unwrap();
    let config = small_config();
    fs::write(dir.path().join("config.json"), serde_json::to_string(&config.gr00t).unwrap()).unwrap();
    fs::write(dir.path().join("eagle_config.json"), serde_json::to_string(&config.eagle).unwrap()).unwrap();
    write_single(&dir.path().join("model.safetensors"), edit);
    dir
}

#[test]
fn a_written_folder_reads_back_as_the_procedural_weights() {
    let parent = TempDir::new().unwrap();
    let dir = small_folder(parent.path());
    let shards = fs::read_dir(&dir)
        .unwrap()
        .filter(|e| e.as_ref().unwrap().file_name().to_string_lossy().ends_with(".safetensors"));
    assert!(shards.count() > 2);
    let checkpoint = open(&dir).unwrap();
    assert_eq!(checkpoint.config(), &small_config());
    assert_eq!(checkpoint.validate().unwrap().warnings, Vec::<String>::new());
    assert_eq!(checkpoint.metadata_path().unwrap(), dir.join("experiment_cfg/metadata.json"));
    assert_eq!(checkpoint.tokenizer_path(), None);
    let weights = Procedural::new(&small_config(), 5);
    assert_eq!(checkpoint.source().names().len(), weights.names().len());
    for name in weights.names() {
        assert_eq!(checkpoint.source().info(&name), weights.info(&name));
        assert_eq!(read(checkpoint.source().as_ref(), &name), read(&weights, &name), "{name}");
    }
    assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 1, "no temporary folder is left");
}

#[test]
fn writing_reports_progress_and_refuses_to_overwrite() {
    let parent = TempDir::new().unwrap();
    let dir = parent.path().join("a/b");
    let mut last = (0, 0);
    let config = small_config();
    write_synthetic(&dir, &config, 1, "{}", u64::MAX, &mut |done, total| {
        last = (done, total);
        Continue(())
    })
    .unwrap();
    let bytes: usize = expected_tensors(&config).iter().map(|t| 2 * t.shape.iter().product::<usize>()).sum();
    assert_eq!(last, (bytes as u64, bytes as u64));
    assert!(dir.join("model-00001-of-00001.safetensors").exists());
    let error = write_synthetic(&dir, &config, 1, "{}", 1, &mut |_, _| Continue(())).unwrap_err().to_string();
    assert!(error.contains("exists, and nothing is overwritten"), "{error}");
    let error =
        write_synthetic(parent.path().join("c"), &config, 1, "[]", 1, &mut |_, _| Continue(())).unwrap_err();
    assert!(matches!(error, Error::Parse { .. }), "{error}");
    assert!(!parent.path().join("c").exists());
}

#[test]
fn writing_that_is_broken_off_leaves_nothing() {
    let parent = TempDir::new().unwrap();
    let dir = parent.path().join("weights");
    let error = write_synthetic(&dir, &small_config(), 1, "{}", 100_000, &mut |done, total| {
        if done > total / 2 { Break(()) } else { Continue(()) }
    });
    assert!(error.unwrap_err().to_string().contains("interrupted"));
    assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
}

/// A snapshot of a hub cache of which only the links have come.
#[test]
fn a_dangling_link_beside_the_weights_is_an_error_and_not_an_absence() {
    let folder = single_folder(|name| Some(name.to_owned()));
    let link = |name: &str| std::os::unix::fs::symlink("../../blobs/none", folder.path().join(name)).unwrap();
    link("tokenizer.json");
    fs::create_dir(folder.path().join("experiment_cfg")).unwrap();
    link("experiment_cfg/metadata.json");
    let checkpoint = open(folder.path()).unwrap();
    assert!(checkpoint.tokenizer_path().is_some() && checkpoint.metadata_path().is_some());
    fs::remove_file(folder.path().join("eagle_config.json")).unwrap();
    link("eagle_config.json");
    assert_refused(folder.path(), "eagle_config.json: No such file");
}

#[test]
fn synthetic_weights_open_without_files() {
    let spec: WeightsSpec = "synthetic:5".parse().unwrap();
    let checkpoint = Checkpoint::open(&spec, &OpenOptions::new().config(small_config())).unwrap();
    checkpoint.validate().unwrap();
    assert_eq!(checkpoint.dir(), None);
    let checkpoint = Checkpoint::open(&spec, &OpenOptions::new()).unwrap();
    assert_eq!(checkpoint.config(), &ModelConfig::n1_5());
    assert_eq!(checkpoint.source().names().len(), 899);
}

#[test]
fn a_single_file_opens_with_a_given_config_or_one_beside_it() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("weights.safetensors");
    write_single(&file, |name| Some(name.to_owned()));
    assert_refused(&file, "no config.json beside it and no config given");
    let options = OpenOptions::new().config(small_config());
    let checkpoint = Checkpoint::open(&WeightsSpec::Path(file), &options).unwrap();
    checkpoint.validate().unwrap();
    let folder = single_folder(|name| Some(name.to_owned()));
    open(&folder.path().join("model.safetensors")).unwrap().validate().unwrap();
    open(folder.path()).unwrap().validate().unwrap();
}

#[test]
fn a_fine_tuned_folder_may_lack_unused_tensors_and_have_another_horizon() {
    let folder = single_folder(|name| {
        (!name.contains("lm_head") && !name.contains("vision_model.head.")).then(|| name.to_owned())
    });
    edit_json(&folder.path().join("config.json"), |config| {
        config["action_horizon"] = json!(8);
        config["action_head_cfg"]["action_horizon"] = json!(8);
    });
    fs::write(folder.path().join("optimizer.pt"), "x").unwrap();
    let checkpoint = open(folder.path()).unwrap();
    assert_eq!(checkpoint.config().gr00t.action_horizon, 8);
    assert_eq!(checkpoint.validate().unwrap().warnings, Vec::<String>::new());
    let parts = checkpoint.inventory();
    assert_eq!(parts.iter().filter(|row| !row.needed).count(), 0);
    assert_eq!(parts[0].part, Some(Part::Vision));
}

#[test]
fn lerobot_names_are_understood() {
    let folder = single_folder(|name| Some(format!("_groot_model.{name}")));
    let checkpoint = open(folder.path()).unwrap();
    assert_eq!(checkpoint.validate().unwrap().warnings, Vec::<String>::new());
    let name = "action_head.vlln.weight";
    assert_eq!(read(checkpoint.source().as_ref(), name), read(&Procedural::new(&small_config(), 5), name));
    assert!(checkpoint.source().names().contains(&name.to_owned()));
    fs::write(folder.path().join("config.json"), r#"{"type": "groot", "chunk_size": 50}"#).unwrap();
    assert_eq!(open(folder.path()).unwrap().config(), &ModelConfig::n1_5());
    fs::write(folder.path().join("config.json"), r#"{"type": "act"}"#).unwrap();
    assert_refused(folder.path(), "LeRobot's policy \"act\", wanted \"groot\"");
}

#[test]
fn other_models_are_refused_by_name() {
    let folder = single_folder(|name| Some(name.to_owned()));
    let config = folder.path().join("config.json");
    for (text, wanted) in [
        (r#"{"model_type": "gr00t_n1", "architectures": ["GR00T_N1"]}"#, "this is GR00T N1 ("),
        (r#"{"architectures": ["GR00T_N1"]}"#, "this is GR00T N1 ("),
        (r#"{"model_type": "Gr00tN1d6", "architectures": ["Gr00tN1d6"]}"#, "this is GR00T N1.6 ("),
        (r#"{"model_type": "Gr00tN1d7"}"#, "this is GR00T N1.7 ("),
        (r#"{"model_type": "llama"}"#, "config.json says \"llama\", only GR00T N1.5"),
        (r#"{"peft_type": "LORA"}"#, "a LoRA adapter (config.json has peft_type)"),
        ("{}", "neither model_type nor action_head_cfg"),
        ("{", "config.json: EOF"),
    ] {
        fs::write(&config, text).unwrap();
        assert_refused(folder.path(), wanted);
    }
    fs::remove_file(&config).unwrap();
    assert_refused(folder.path(), "config.json is missing");
}

#[test]
fn adapters_pickles_and_empty_folders_are_refused_by_name() {
    let dir = TempDir::new().unwrap();
    assert_refused(dir.path(), "no model.safetensors and no model.safetensors.index.json");
    fs::write(dir.path().join("pytorch_model.bin"), "x").unwrap();
    assert_refused(dir.path(), "only pickled weights (pytorch_model.bin), which are not read");
    fs::write(dir.path().join("model-00001-of-00002.safetensors"), "x").unwrap();
    assert_refused(dir.path(), "only model-00001-of-00002.safetensors");
    fs::write(dir.path().join("adapter_model.safetensors"), "x").unwrap();
    assert_refused(dir.path(), "a LoRA adapter (adapter_model.safetensors): merge it");
    assert_refused(&dir.path().join("nowhere"), "is missing; wanted a folder");
    let folder = single_folder(|name| Some(name.replace("to_q.weight", "to_q.lora_A.default.weight")));
    assert_refused(folder.path(), "a LoRA adapter (tensor action_head.");
}

#[test]
fn all_differences_are_in_one_message() {
    let folder = single_folder(|name| match name {
        "action_head.vlln.weight" => None,
        "action_head.vlln.bias" => Some("action_head.vlln.offset".into()),
        name => (!name.ends_with("layer_norm1.bias")).then(|| name.to_owned()),
    });
    edit_json(&folder.path().join("config.json"), |config| {
        config["action_head_cfg"]["max_state_dim"] = json!(48);
    });
    let error = open(folder.path()).unwrap().validate().unwrap_err().to_string();
    for wanted in [
        "4 of ",
        "action_head.vlln.weight",
        "vision_model.encoder.layers.*.layer_norm1.bias (2x)",
        "action_head.state_encoder.layer1.W has shape [3, 64, 24], wanted [3, 48, 24]",
        "1 tensors that the model lacks: action_head.vlln.offset",
    ] {
        assert!(error.contains(wanted), "{error:?} lacks {wanted:?}");
    }
}

#[test]
fn extra_tensors_give_a_warning_and_integers_as_weights_an_error() {
    let folder = single_folder(|name| Some(name.replace("lm_head", "other_head")));
    let warnings = open(folder.path()).unwrap().validate().unwrap().warnings;
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].contains("other_head.weight"), "{warnings:?}");
    let file = TempDir::new().unwrap();
    let path = file.path().join("x.safetensors");
    fs::write(&path, safetensors_of(&[("action_head.vlln.bias", "I64", &[32], vec![0; 256])])).unwrap();
    let source = SafetensorsFile::open(path).unwrap();
    let error = gr00t_host::checkpoint::validate(&source, &small_config()).unwrap_err().to_string();
    assert!(error.contains("action_head.vlln.bias is I64, wanted BF16, F16 or F32"), "{error}");
}

#[test]
fn the_check_reads_everything_and_names_what_is_not_finite() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("x.safetensors");
    let mut floats = vec![1.0_f32; 3_000_000];
    // Finite in f32 although it is beyond bf16's largest number.
    floats[7] = f32::MAX;
    let bytes = |values: &[f32]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
    let tensors = |floats: &[f32], last: u16| {
        safetensors_of(&[
            ("a", "F32", &[3, 1_000_000], bytes(floats)),
            ("b", "BF16", &[2], [0x3f80, last].into_iter().flat_map(u16::to_le_bytes).collect()),
            ("ids", "I64", &[1], vec![255; 8]),
        ])
    };
    fs::write(&path, tensors(&floats, 0)).unwrap();
    let file = SafetensorsFile::open(&path).unwrap();
    let most = AtomicU64::new(0);
    let report = gr00t_host::checkpoint::check_finite(&file, &|done, total| {
        assert!(done <= total);
        most.fetch_max(done, Ordering::Relaxed);
    });
    let report = report.unwrap();
    assert_eq!((report.tensors, report.elements, report.bytes), (2, 3_000_002, 12_000_004));
    assert_eq!(most.into_inner(), report.bytes);

    floats[2_999_999] = f32::NAN;
    floats[1_500_000] = f32::INFINITY;
    fs::write(&path, tensors(&floats, 0xff80)).unwrap();
    let file = SafetensorsFile::open(&path).unwrap();
    let error = gr00t_host::checkpoint::check_finite(&file, &|_, _| ()).unwrap_err().to_string();
    let wanted = "tensor a is inf at element 1500000 of 3000000; tensor b is -inf at element 1 of 2";
    assert!(error.ends_with(wanted), "{error}");
}

#[test]
fn a_missing_shard_is_found_before_anything_is_read() {
    let parent = TempDir::new().unwrap();
    let dir = small_folder(parent.path());
    let last = fs::read_dir(&dir)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "safetensors"))
        .max()
        .unwrap();
    fs::remove_file(&last).unwrap();
    assert_refused(&dir, &format!("shard {} (for ", last.file_name().unwrap().display()));
}

#[test]
fn specs_are_told_apart_and_written_back() {
    let parse = |text: &str| text.parse::<WeightsSpec>();
    for text in ["synthetic:0", "./a/b", "owner/name@main", "/absent/dir", "weights.safetensors", "a/b/c"] {
        assert_eq!(parse(text).unwrap().to_string(), text);
    }
    assert_eq!(parse("synthetic").unwrap(), WeightsSpec::Synthetic { seed: 0 });
    let pinned = parse("nvidia/GR00T-N1.5-3B").unwrap().to_string();
    assert_eq!(pinned, "nvidia/GR00T-N1.5-3B@869830fc749c35f34771aa5209f923ac57e4564e");
    for path in ["../x", "a b/c", "owner/name@../../x", "owner/name@", ".hidden/x", "~/x", "owner/"] {
        assert!(matches!(parse(path).unwrap(), WeightsSpec::Path(_)), "{path}");
    }
    assert!(matches!(parse("src/checkpoint").unwrap(), WeightsSpec::Path(_)), "exists here");
    assert!(parse("").is_err());
    assert!(parse("synthetic:-1").unwrap_err().to_string().contains("seed \"-1\" is not a number"));
}
