//! The cache of packed weights: same actions, no packing the second time, damage repaired, other sources kept apart.

#![expect(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

use std::path::{Path, PathBuf};

use gr00t_host::checkpoint::{Checkpoint, OpenOptions, WeightsSpec};
use gr00t_host::{ModelConfig, ModelInputs};
use gr00t_model::{DtypePolicy, Gr00t, PackedCache, PackedCacheStats, RunOptions};
use tt_ops::Soft;

fn checkpoint(seed: u64) -> Checkpoint {
    let options = OpenOptions::new().config(ModelConfig::mini());
    Checkpoint::open(&WeightsSpec::Synthetic { seed }, &options).unwrap()
}

/// Actions of a model loaded with the cache in `root`, and what the cache did.
fn load(root: &Path, seed: u64, policy: DtypePolicy) -> (Vec<f32>, PackedCacheStats) {
    let checkpoint = checkpoint(seed);
    let cache = PackedCache::new(&checkpoint, root).unwrap();
    let model = Gr00t::builder(checkpoint.config().clone(), checkpoint.weights(), Soft::open().unwrap())
        .dtype_policy(policy)
        .embodiments([24])
        .packed_cache(Some(cache))
        .build()
        .unwrap();
    let config = model.config();
    let mut input_ids = vec![config.eagle.image_token_index; config.eagle.tokens_per_view()];
    input_ids.extend([1, 2, 3]);
    let inputs = ModelInputs {
        pixel_values: vec![0.5; 3 * 224 * 224],
        views: 1,
        input_ids,
        state: vec![0.0; 64],
        noise: vec![1.0; 16 * 32],
        embodiment_id: 24,
    };
    let actions = model.predict(&inputs, &RunOptions::new()).unwrap().action_pred;
    (actions, model.packed_cache().unwrap().stats())
}

fn files(root: &Path) -> Vec<PathBuf> {
    let entries = |path: &Path| std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        entries(root).flat_map(|folder| entries(&folder).collect::<Vec<_>>()).collect();
    files.sort();
    files
}

#[test]
fn the_second_load_packs_nothing_and_acts_the_same() {
    let root = tempfile::tempdir().unwrap();
    let (first, cold) = load(root.path(), 3, DtypePolicy::MixedDit);
    let (second, warm) = load(root.path(), 3, DtypePolicy::MixedDit);
    assert_eq!(first, second);
    assert_eq!((cold.hits, cold.write_error), (0, None));
    assert_eq!((warm.hits, warm.misses, warm.damaged), (cold.misses, 0, 0));
    assert_eq!(files(root.path()).len(), cold.misses);
    // what another policy has in common with this one is shared
    let (_, other) = load(root.path(), 3, DtypePolicy::Bf16);
    assert!(other.hits > 0 && other.misses > 0, "{other:?}");
}

#[test]
fn damaged_files_are_packed_anew_and_replaced() {
    let root = tempfile::tempdir().unwrap();
    let (first, _) = load(root.path(), 3, DtypePolicy::Mixed);
    let files = files(root.path());
    let mut bytes = std::fs::read(&files[0]).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&files[0], bytes).unwrap();
    std::fs::write(&files[1], b"").unwrap();
    // the file of another weight
    std::fs::copy(&files[3], &files[2]).unwrap();

    let (repaired, stats) = load(root.path(), 3, DtypePolicy::Mixed);
    let (again, clean) = load(root.path(), 3, DtypePolicy::Mixed);

    assert_eq!(repaired, first);
    assert_eq!(again, first);
    assert_eq!(stats.damaged, 3);
    assert_eq!((clean.damaged, clean.misses), (0, 0));
}

#[test]
fn other_weights_are_kept_apart() {
    let root = tempfile::tempdir().unwrap();
    let (first, _) = load(root.path(), 3, DtypePolicy::Mixed);
    let (other, stats) = load(root.path(), 4, DtypePolicy::Mixed);
    assert_ne!(first, other);
    assert_eq!(stats.hits, 0);
}

#[test]
fn a_folder_that_cannot_be_written_is_reported_and_does_no_harm() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("a file");
    std::fs::write(&file, b"").unwrap();
    let (_, stats) = load(&file, 3, DtypePolicy::Mixed);
    assert!(stats.write_error.is_some(), "{stats:?}");
}
