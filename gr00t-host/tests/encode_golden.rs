//! The whole host path on real robot observations, against what NVIDIA's code gave (`golden/mini`, `golden/full`).

#![allow(clippy::unwrap_used, reason = "a test's unwrap is its assertion")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gr00t_host::action::ActionOptions;
use gr00t_host::checkpoint::SafetensorsFile;
use gr00t_host::decode::Decoder;
use gr00t_host::embodiment::{DataConfig, Metadata};
use gr00t_host::encode::{Encoder, EncoderOptions};
use gr00t_host::noise::Noise;
use gr00t_host::observation::ObservationFile;
use gr00t_host::prompt::Tokenizer;
use gr00t_host::{ModelConfig, TensorSource};

/// One golden case with everything that binds it to a model.
struct Case {
    folder: PathBuf,
    file: ObservationFile,
    golden: SafetensorsFile,
    model: ModelConfig,
    data_config: DataConfig,
    metadata: Metadata,
}

impl Case {
    /// `None` (with a line that says so) where the golden results are absent.
    fn open(name: &str, model: ModelConfig) -> Option<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/golden").join(name);
        if !folder.exists() {
            println!("skipped: {} is absent", folder.display());
            return None;
        }
        let file = ObservationFile::read(folder.join("observation.json")).unwrap();
        let data_config = DataConfig::load(file.data_config.as_deref().unwrap()).unwrap();
        let metadata = Metadata::from_file(file.resolve(file.metadata.as_deref().unwrap())).unwrap();
        let golden = SafetensorsFile::open(folder.join("golden.safetensors")).unwrap();
        Some(Self { folder, file, golden, model, data_config, metadata })
    }

    fn tensor(&self, name: &str) -> Vec<f32> {
        let mut values = vec![0.0; self.golden.info(name).unwrap().elements()];
        self.golden.read_f32(name, 0, &mut values).unwrap();
        values
    }

    fn encoder(&self, options: EncoderOptions) -> Encoder {
        let tokenizer = Arc::new(Tokenizer::qwen2());
        Encoder::new(&self.model, &self.data_config, &self.metadata, tokenizer, options).unwrap()
    }
}

fn cases() -> Vec<Case> {
    [
        Case::open("mini/gr1", ModelConfig::mini()),
        Case::open("mini/droid_three_views", ModelConfig::mini()),
        Case::open("full", ModelConfig::n1_5()),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[test]
fn encoded_observation_equals_the_models_inputs() {
    for case in cases() {
        let name = case.folder.display();
        let noise = Noise::Explicit(case.tensor("in.noise"));
        let observation = case.file.observation().unwrap();
        let encoded = case.encoder(EncoderOptions::default()).encode(&observation, &noise).unwrap();
        let inputs = encoded.inputs;
        assert!(inputs.pixel_values == case.tensor("in.eagle_pixel_values"), "{name}: pixel values");
        let ids: Vec<u32> =
            case.golden.read_i64("in.eagle_input_ids").unwrap().iter().map(|&id| id as u32).collect();
        assert_eq!(inputs.input_ids, ids, "{name}: token ids");
        assert_eq!(inputs.input_ids.len(), case.file.expected.as_ref().unwrap().prompt_tokens.unwrap());
        assert_eq!(inputs.state, case.tensor("in.state"), "{name}: state");
        assert_eq!(inputs.noise, case.tensor("in.noise"));
        assert_eq!(inputs.embodiment_id as i64, case.golden.read_i64("in.embodiment_id").unwrap()[0]);
    }
}

#[test]
fn decoded_action_pred_equals_the_physical_actions() {
    for case in cases() {
        let decoder =
            Decoder::new(&case.model, &case.data_config, &case.metadata, ActionOptions::default()).unwrap();
        let chunk = decoder.decode(&case.tensor("out.action_pred")).unwrap();
        let expected = &case.file.expected.as_ref().unwrap().actions;
        assert_eq!(chunk.groups.len(), expected.len());
        for group in &chunk.groups {
            let want: Vec<f32> = expected[&group.key].iter().flatten().map(|&v| v as f32).collect();
            assert_eq!(group.values, want, "{}", group.key);
        }
    }
}

#[test]
fn every_problem_of_an_observation_is_named_at_once() {
    let Some(case) = Case::open("mini/gr1", ModelConfig::mini()) else { return };
    let mut observation = case.file.observation().unwrap();
    let frame = observation.images.remove("ego_view").unwrap();
    observation.images.insert("ego_veiw".into(), frame);
    let arm = observation.state.remove("left_arm").unwrap();
    observation.state.insert("left_amr".into(), arm);
    observation.instruction = Some("x".repeat(2001));
    let noise = Noise::Explicit(vec![f32::NAN; 16 * 32]);
    let message =
        case.encoder(EncoderOptions::default()).encode(&observation, &noise).unwrap_err().to_string();
    for part in ["image ego_view is missing", "ego_veiw", "left_arm", "left_amr", "2000", "noise"] {
        assert!(message.contains(part), "{part:?} is not in {message}");
    }
    assert!(!message.contains('\n'));
}

#[test]
fn frame_of_another_size_is_refused_with_both_sizes_unless_a_policy_allows_it() {
    let Some(case) = Case::open("mini/gr1", ModelConfig::mini()) else { return };
    let mut observation = case.file.observation().unwrap();
    let frame = gr00t_host::image::Frame::new(640, 480, vec![90; 640 * 480 * 3]).unwrap();
    observation.images.insert("ego_view".into(), frame);
    let noise = Noise::Seed(0);
    let message =
        case.encoder(EncoderOptions::default()).encode(&observation, &noise).unwrap_err().to_string();
    assert!(message.contains("image ego_view: frame is 640x480, the metadata wants 256x256"), "{message}");
    for policy in ["resize", "letterbox"] {
        let options = EncoderOptions { resolution: policy.parse().unwrap(), ..Default::default() };
        assert!(case.encoder(options).encode(&observation, &noise).is_ok(), "{policy}");
    }
}

#[test]
fn sequence_longer_than_the_bound_is_refused_not_cut() {
    let Some(case) = Case::open("mini/gr1", ModelConfig::mini()) else { return };
    let observation = case.file.observation().unwrap();
    let options = EncoderOptions { max_tokens: 295, ..Default::default() };
    let message = case.encoder(options).encode(&observation, &Noise::Seed(0)).unwrap_err().to_string();
    assert!(message.contains("296 tokens, at most 295"), "{message}");
}

#[test]
fn data_config_with_another_horizon_than_the_model_is_refused() {
    let Some(mut case) = Case::open("mini/gr1", ModelConfig::mini()) else { return };
    case.data_config.action_horizon = 8;
    let tokenizer = Arc::new(Tokenizer::qwen2());
    let refused =
        Encoder::new(&case.model, &case.data_config, &case.metadata, tokenizer, EncoderOptions::default());
    assert!(refused.unwrap_err().to_string().contains("action_horizon 8, but the model's is 16"));
    case.model = case.model.with_action_horizon(8).unwrap();
    case.encoder(EncoderOptions::default());
}
