//! Reads a golden case (its form is described in `shared/golden/README.md`) and compares stages with it.
#![allow(dead_code, reason = "each test file uses a part")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gr00t_host::checkpoint::{Procedural, SafetensorsFile, TensorSource};
use gr00t_host::{ModelConfig, ModelInputs, Weights, metrics};
use gr00t_model::{DtypePolicy, Gr00t, Gr00tBuilder, Observer};
use serde_json::Value;
use tt_ops::Soft;

/// One folder of `shared/golden`.
pub(crate) struct Case {
    pub(crate) config: ModelConfig,
    pub(crate) weights: Weights,
    pub(crate) inputs: ModelInputs,
    golden: SafetensorsFile,
}

impl Case {
    /// `shared/golden/{name}`, or `None`, said on standard output, where that is absent.
    pub(crate) fn open(name: &str) -> Option<Self> {
        let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/golden")).join(name);
        if !folder.join("case.json").is_file() {
            println!("skipped: {} is absent", folder.display());
            return None;
        }
        Some(Self::read(&folder))
    }

    fn read(folder: &Path) -> Self {
        let case: Value = serde_json::from_slice(&std::fs::read(folder.join("case.json")).unwrap()).unwrap();
        let config = match case["config"].as_str().unwrap() {
            "n1.5" => ModelConfig::n1_5(),
            file => {
                let eagle = folder.join(case["eagle_config"].as_str().unwrap());
                ModelConfig::from_files(folder.join(file), Some(&eagle)).unwrap()
            }
        };
        let source: Arc<dyn TensorSource> = if let Some(file) = case["weights"]["file"].as_str() {
            Arc::new(SafetensorsFile::open(folder.join(file)).unwrap())
        } else {
            let seed = case["weights"]["procedural"]["seed"].as_u64().unwrap();
            Arc::new(Procedural::new(&config, seed))
        };
        let golden = SafetensorsFile::open(folder.join(case["golden"].as_str().unwrap())).unwrap();
        let ids = golden.read_i64("in.eagle_input_ids").unwrap();
        let inputs = ModelInputs {
            pixel_values: read_f32(&golden, "in.eagle_pixel_values"),
            views: case["views"].as_u64().unwrap() as usize,
            input_ids: ids.into_iter().map(|id| u32::try_from(id).unwrap()).collect(),
            state: read_f32(&golden, "in.state"),
            noise: read_f32(&golden, "in.noise"),
            embodiment_id: case["embodiment_id"].as_u64().unwrap() as usize,
        };
        Self { config, weights: Weights::new(source), inputs, golden }
    }

    /// A builder of the case's model on the software device, with the case's embodiment.
    pub(crate) fn builder(&self, policy: DtypePolicy) -> Gr00tBuilder<Soft> {
        self.builder_on(Soft::open().unwrap(), policy)
    }

    /// [`builder`](Self::builder) on `device`.
    pub(crate) fn builder_on(&self, device: Soft, policy: DtypePolicy) -> Gr00tBuilder<Soft> {
        Gr00t::builder(self.config.clone(), self.weights.clone(), device)
            .dtype_policy(policy)
            .embodiments([self.inputs.embodiment_id])
    }

    /// An observer that compares every stage.
    pub(crate) fn comparison(&self) -> Comparison<'_> {
        let rows = |kind: &str| -> Vec<usize> {
            let rows = self.golden.read_i64(&format!("rows.{kind}")).unwrap_or_default();
            rows.into_iter().map(|row| usize::try_from(row).unwrap()).collect()
        };
        Comparison {
            golden: &self.golden,
            unseen: self
                .golden
                .names()
                .into_iter()
                .filter(|name| name.starts_with("out.") || name.starts_with("rows8."))
                // the same in double precision: not a stage
                .filter(|name| name != "out.action_pred_f64_as_f32")
                .collect(),
            rows: [rows("vision"), rows("llm"), rows("dit")],
            stages: Vec::new(),
        }
    }

    /// The golden actions.
    pub(crate) fn action_pred(&self) -> Vec<f32> {
        read_f32(&self.golden, "out.action_pred")
    }
}

fn read_f32(file: &SafetensorsFile, name: &str) -> Vec<f32> {
    let mut out = vec![0.0; file.info(name).unwrap().elements()];
    file.read_f32(name, 0, &mut out).unwrap();
    out
}

/// How near one stage came to the golden one.
pub(crate) struct Stage {
    pub(crate) name: String,
    pub(crate) metrics: metrics::Comparison,
}

/// Compares each stage as it comes.
pub(crate) struct Comparison<'a> {
    golden: &'a SafetensorsFile,
    /// Golden tensors that no stage has been compared with yet.
    pub(crate) unseen: BTreeSet<String>,
    rows: [Vec<usize>; 3],
    pub(crate) stages: Vec<Stage>,
}

impl Observer for Comparison<'_> {
    fn stage(&mut self, name: &str, [_, width]: [usize; 2], values: &[f32]) {
        let [vision, llm, dit] = &self.rows;
        let (key, got) = if self.unseen.remove(&format!("out.{name}")) {
            (format!("out.{name}"), values.to_vec())
        } else if self.unseen.remove(&format!("rows8.{name}")) {
            let rows = match name.split('.').next() {
                Some("vision") => vision,
                Some("llm" | "adapter") => llm,
                _ => dit,
            };
            let rows = rows.iter().flat_map(|row| &values[row * width..(row + 1) * width]);
            (format!("rows8.{name}"), rows.copied().collect())
        } else {
            println!("{name:24} not in the golden case");
            return;
        };
        let metrics = metrics::compare(&got, &read_f32(self.golden, &key));
        let (off, max_abs, rel_rms) =
            (1.0 - metrics.pcc.unwrap_or(f64::NAN), metrics.max_abs, metrics.rel_rms);
        println!("{name:24} pcc 1 - {off:8.1e}  max abs {max_abs:.1e}  rel rms {rel_rms:.1e}");
        self.stages.push(Stage { name: name.into(), metrics });
    }
}

/// Whether a stage must pass its policy's gate; the others are reported.
pub(crate) fn is_gated(stage: &str) -> bool {
    ["vision.mlp1", "backbone.features", "adapter.out", "action_pred"].contains(&stage)
        || stage.ends_with(".dit_out")
}
