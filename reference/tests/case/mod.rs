//! Reads a golden case (its form is described in `shared/golden/README.md`) and compares stages with it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gr00t_host::checkpoint::{Procedural, SafetensorsFile, TensorSource};
use gr00t_host::{ModelConfig, ModelInputs, Weights, metrics};
use ndarray::{ArrayView2, Axis};
use reference::{Observer, Part};
use serde_json::Value;

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
    fn stage(&mut self, name: &str, tensor: ArrayView2<'_, f32>) {
        let [vision, llm, dit] = &self.rows;
        let (key, got) = if self.unseen.remove(&format!("out.{name}")) {
            (format!("out.{name}"), tensor.to_owned())
        } else if self.unseen.remove(&format!("rows8.{name}")) {
            let rows = match name.split('.').next() {
                Some("vision") => vision,
                Some("llm" | "adapter") => llm,
                _ => dit,
            };
            (format!("rows8.{name}"), tensor.select(Axis(0), rows))
        } else {
            println!("{name:24} not in the golden case");
            return;
        };
        let want = read_f32(self.golden, &key);
        let got = got.iter().copied().collect::<Vec<_>>();
        let metrics = metrics::compare(&got, &want);
        let (off, max_abs) = (1.0 - metrics.pcc.unwrap_or(f64::NAN), metrics.max_abs);
        println!("{name:24} pcc 1 - {off:8.1e}  max abs {max_abs:.1e}");
        self.stages.push(Stage { name: name.into(), metrics });
    }

    fn finished(&mut self, part: Part, elapsed: std::time::Duration) {
        println!("-- {} took {:.2} s", part.name(), elapsed.as_secs_f64());
    }
}
