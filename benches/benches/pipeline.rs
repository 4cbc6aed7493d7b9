//! The host's share of a request: one GR1 observation to model inputs, and the model's output to an action chunk.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use gr00t_host::ModelConfig;
use gr00t_host::action::ActionOptions;
use gr00t_host::decode::Decoder;
use gr00t_host::embodiment::{DataConfig, synthetic_metadata};
use gr00t_host::encode::{Encoder, EncoderOptions};
use gr00t_host::image::Frame;
use gr00t_host::noise::{Noise, torch_randn};
use gr00t_host::observation::{Observation, Values};
use gr00t_host::prompt::Tokenizer;

fn pipeline(criterion: &mut Criterion) {
    let model = ModelConfig::n1_5();
    let config = DataConfig::builtin("fourier_gr1_arms_only").expect("built in");
    let metadata = synthetic_metadata(&config).expect("fits");
    let tokenizer = Arc::new(Tokenizer::qwen2());
    let encoder =
        Encoder::new(&model, &config, &metadata, tokenizer, EncoderOptions::default()).expect("fits");
    let decoder = Decoder::new(&model, &config, &metadata, ActionOptions::default()).expect("fits");

    let pixels = (0..256 * 256 * 3).map(|i| (i * 7 % 251) as u8).collect();
    let mut observation = Observation {
        instruction: Some("pick the squash from the counter and place it in the plate".into()),
        ..Default::default()
    };
    observation.images.insert("ego_view".into(), Frame::new(256, 256, pixels).expect("a whole frame"));
    for key in encoder.state().keys() {
        observation.state.insert(key.key().into(), Values::F64(vec![0.1; key.dim()]));
    }
    criterion.bench_function("encode/gr1/256x256", |bencher| {
        bencher.iter(|| encoder.encode(black_box(&observation), &Noise::Seed(0)).expect("encodes"));
    });
    let action_pred = torch_randn(0, 16 * 32);
    criterion.bench_function("decode/gr1", |bencher| {
        bencher.iter(|| decoder.decode(black_box(&action_pred)).expect("decodes"));
    });
}

criterion_group!(benches, pipeline);
criterion_main!(benches);
