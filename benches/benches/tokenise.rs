//! From an instruction to a prompt's token ids, and the initial noise: host work of every request.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use gr00t_host::noise::torch_randn;
use gr00t_host::prompt::{IMAGE_TOKEN_ID, MAX_INSTRUCTION_CHARS, PromptOptions, Tokenizer};

/// Image tokens of one 224 × 224 view.
const TOKENS_PER_VIEW: usize = 256;

fn tokenise(criterion: &mut Criterion) {
    let tokenizer = Tokenizer::qwen2();
    let short = "pick the squash from the counter and place it in the plate";
    let long: String = "pick up the cube, then ".chars().cycle().take(MAX_INSTRUCTION_CHARS).collect();
    let mut group = criterion.benchmark_group("tokenise");
    for (name, instruction, views) in
        [("short, 1 view", short, 1), ("short, 3 views", short, 3), ("2000 characters, 1 view", &long, 1)]
    {
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                tokenizer.prompt(
                    Some(black_box(instruction)),
                    views,
                    TOKENS_PER_VIEW,
                    IMAGE_TOKEN_ID,
                    &PromptOptions::default(),
                )
            });
        });
    }
    group.finish();
}

fn noise(criterion: &mut Criterion) {
    criterion.bench_function("noise/16x32", |bencher| bencher.iter(|| torch_randn(black_box(7), 16 * 32)));
}

criterion_group!(benches, tokenise, noise);
criterion_main!(benches);
