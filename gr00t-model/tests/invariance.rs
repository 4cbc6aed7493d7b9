//! What must not change a single byte of the actions: padding, company in a batch, threads, trace layout, observers, what ran before.

#![expect(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

mod case;

use case::Case;
use gr00t_host::ModelInputs;
use gr00t_model::{DtypePolicy, Gr00t, RunOptions, TraceLayout};
use tt_ops::Soft;

fn actions(model: &Gr00t<Soft>, inputs: &ModelInputs) -> Vec<f32> {
    model.predict(inputs, &RunOptions::new()).unwrap().action_pred
}

/// The case's inputs with `tokens` more text tokens at the end.
fn longer(case: &Case, tokens: usize) -> ModelInputs {
    let mut inputs = case.inputs.clone();
    inputs.input_ids.extend((0..tokens).map(|i| 11 + i as u32));
    inputs
}

#[test]
fn padding_changes_nothing() {
    for name in ["tiny/a", "tiny/two_views", "mini/gr1"] {
        let Some(case) = Case::open(name) else { return };
        let unpadded = case.builder(DtypePolicy::Bf16).sequence_bucket(1).build().unwrap();
        let padded = [32, 64, 96]
            .map(|bucket| case.builder(DtypePolicy::Bf16).sequence_bucket(bucket).build().unwrap());
        for tokens in [0, 1, 5] {
            let inputs = longer(&case, tokens);
            let want = actions(&unpadded, &inputs);
            for model in &padded {
                let bucket = model.options().sequence_bucket;
                assert_eq!(actions(model, &inputs), want, "{name}, {tokens} more tokens, bucket {bucket}");
            }
        }
    }
}

#[test]
fn a_row_of_a_batch_does_not_depend_on_its_neighbours() {
    for (name, policy) in [
        ("tiny/a", DtypePolicy::Bf16),
        ("tiny/two_views", DtypePolicy::Mixed),
        ("mini/gr1", DtypePolicy::MixedDit),
    ] {
        let Some(case) = Case::open(name) else { return };
        let model = case.builder(policy).sequence_bucket(32).build().unwrap();
        // prompts of four lengths, three of them in one bucket; other noise and state
        let mut rows = [case.inputs.clone(), longer(&case, 2), longer(&case, 40), longer(&case, 1)];
        rows[1].noise.reverse();
        rows[3].state.reverse();
        let singles: Vec<_> = rows.iter().map(|row| actions(&model, row)).collect();

        let batch = model.predict_batch(&rows.each_ref(), &RunOptions::new()).unwrap();

        assert_ne!(singles[0], singles[1]);
        for (row, (got, want)) in batch.iter().zip(&singles).enumerate() {
            assert_eq!(&got.action_pred, want, "{name}, row {row}");
        }
        let batches: Vec<usize> = model.trace_keys().iter().map(gr00t_model::TraceKey::batch).collect();
        assert!(batches.contains(&3), "rows of equal geometry share a replay: {batches:?}");
    }
}

#[test]
fn only_rows_of_one_length_share_a_replay_where_nothing_is_padded() {
    let Some(case) = Case::open("tiny/a") else { return };
    let model = case.builder(DtypePolicy::MixedDit).build().unwrap();
    let rows = [longer(&case, 2), case.inputs.clone(), longer(&case, 2)];
    let singles: Vec<_> = rows.iter().map(|row| actions(&model, row)).collect();

    let batch = model.predict_batch(&rows.each_ref(), &RunOptions::new()).unwrap();

    for (got, want) in batch.iter().zip(&singles) {
        assert_eq!(&got.action_pred, want);
    }
    let batches: Vec<usize> = model.trace_keys().iter().map(gr00t_model::TraceKey::batch).collect();
    assert_eq!(batches.iter().max(), Some(&2), "{batches:?}");
}

#[test]
fn prompts_of_many_lengths_take_no_more_memory_than_a_few() {
    /// Captures that are kept, and what the device keeps of freed memory.
    const CAP: usize = 3;
    const POOL_BYTES: usize = 16 << 20;
    let Some(case) = Case::open("tiny/a") else { return };
    let model = case.builder(DtypePolicy::Bf16).trace_cap(CAP).build().unwrap();
    let bytes = || {
        let memory = model.device().memory_bytes();
        memory.tensors + memory.pooled + memory.arena
    };
    // the longest first: from then on nothing is larger than what was seen
    for tokens in (200..200 + CAP).rev() {
        actions(&model, &longer(&case, tokens));
    }
    let most = bytes();
    for tokens in (0..200).rev() {
        actions(&model, &longer(&case, tokens));
        assert!(bytes() <= most + POOL_BYTES, "{tokens} more tokens: {} bytes, {most} before", bytes());
    }
    let stats = model.trace_stats();
    assert_eq!((stats.entries, stats.captures), (CAP, 200 + CAP as u64));
}

#[test]
fn threads_change_nothing() {
    for name in ["tiny/a", "mini/gr1"] {
        let Some(case) = Case::open(name) else { return };
        let [one, two, three] = [1, 2, 3].map(|threads| {
            let device = Soft::builder().threads(threads).open().unwrap();
            actions(&case.builder_on(device, DtypePolicy::MixedDit).build().unwrap(), &case.inputs)
        });
        assert_eq!(one, two, "{name}");
        assert_eq!(one, three, "{name}");
    }
}

#[test]
fn two_traces_give_the_bytes_of_four() {
    let Some(case) = Case::open("tiny/two_views") else { return };
    let [four, two] = [TraceLayout::PerStage, TraceLayout::Two].map(|layout| {
        let model = case.builder(DtypePolicy::Mixed).trace_layout(layout).build().unwrap();
        let output = model.predict(&case.inputs, &RunOptions::new()).unwrap();
        let stages: Vec<_> = output.timings.stages.iter().map(|timing| timing.stage).collect();
        assert_eq!(stages, layout.stages());
        output.action_pred
    });
    assert_eq!(four, two);
}

#[test]
fn the_checked_mode_finds_nothing_and_changes_nothing() {
    for name in ["tiny/a", "tiny/two_views", "mini/gr1"] {
        let Some(case) = Case::open(name) else { return };
        let checked = Soft::builder().checked(true).open().unwrap();
        let got = actions(&case.builder_on(checked, DtypePolicy::MixedDit).build().unwrap(), &case.inputs);
        assert_eq!(
            got,
            actions(&case.builder(DtypePolicy::MixedDit).build().unwrap(), &case.inputs),
            "{name}"
        );
    }
}

#[test]
fn a_thousand_replays_with_other_requests_between_are_equal() {
    /// Replays of each of the two inputs.
    const REPLAYS: usize = 1000;
    let Some(case) = Case::open("tiny/a") else { return };
    // room for two geometries: the third kind of request makes them be captured anew now and then
    let model = case.builder(DtypePolicy::MixedDit).trace_cap(2).build().unwrap();
    let (first, second, third) = (case.inputs.clone(), longer(&case, 40), longer(&case, 80));
    let wanted = [actions(&model, &first), actions(&model, &second)];
    for replay in 0..REPLAYS {
        assert_eq!(actions(&model, &first), wanted[0], "replay {replay}");
        assert_eq!(actions(&model, &second), wanted[1], "replay {replay}");
        if replay % 100 == 0 {
            actions(&model, &third);
        }
    }
    let stats = model.trace_stats();
    assert_eq!(stats.entries, 2);
    assert!(stats.evictions >= 10 && stats.hits > 1900, "{stats:?}");
}

#[test]
fn requests_from_several_threads_take_turns() {
    let Some(case) = Case::open("tiny/a") else { return };
    let model = case.builder(DtypePolicy::Bf16).build().unwrap();
    let inputs = [case.inputs.clone(), longer(&case, 3), longer(&case, 40)];
    let wanted = inputs.each_ref().map(|inputs| actions(&model, inputs));
    std::thread::scope(|scope| {
        for (inputs, wanted) in inputs.iter().zip(&wanted) {
            let model = &model;
            scope.spawn(move || (0..20).for_each(|_| assert_eq!(&actions(model, inputs), wanted)));
        }
    });
}
