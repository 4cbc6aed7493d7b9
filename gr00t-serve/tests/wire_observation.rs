//! Messages → observations: what upstream's clients send is understood, what is wrong is named.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use gr00t_host::action::{ActionChunk, ActionGroup};
use gr00t_host::observation::Values;
use gr00t_serve::codec::{
    Array, Batch, CodecError, Elements, RobotKeys, SEED_KEY, Value, action_arrays, action_matrix,
    observations,
};

fn robot() -> RobotKeys {
    RobotKeys {
        cameras: vec!["front".into(), "wrist".into()],
        state: vec![("arm".into(), 2), ("gripper".into(), 1)],
    }
}

fn array(shape: &[usize], elements: Elements) -> Value {
    Value::Array(Array::new(shape.to_vec(), elements).unwrap())
}

fn f64s(shape: &[usize], values: &[f64]) -> Value {
    array(shape, Elements::F64(values.to_vec()))
}

fn image(shape: &[usize]) -> Value {
    let count = shape.iter().product();
    array(shape, Elements::U8((0..count).map(|i| i as u8).collect()))
}

fn read(pairs: Vec<(&str, Value)>) -> Batch {
    observations(Value::map(pairs), &robot()).unwrap()
}

fn problems(pairs: Vec<(&str, Value)>) -> String {
    match observations(Value::map(pairs), &robot()) {
        Err(CodecError::Observation(problems)) => problems.join("; "),
        other => panic!("not refused: {other:?}"),
    }
}

fn texts(texts: &[&str]) -> Value {
    Value::List(texts.iter().map(|&t| Value::text(t)).collect())
}

#[test]
fn the_stock_flat_form_is_read() {
    let batch = read(vec![
        ("video.front", image(&[1, 2, 4, 3])),
        ("state.arm", f64s(&[1, 2], &[0.5, -0.5])),
        ("state.gripper", array(&[1, 1], Elements::F32(vec![0.25]))),
        ("annotation.human.task_description", texts(&["pick the pear"])),
        ("timestamp", Value::Float(1.0)),
    ]);
    let [observation] = batch.observations.as_slice() else { panic!("{batch:?}") };
    let frame = &observation.images["front"];
    assert_eq!((frame.width(), frame.height(), frame.rgb()[23]), (4, 2, 23));
    assert_eq!(observation.state["arm"], Values::F64(vec![0.5, -0.5]));
    assert_eq!(observation.state["gripper"], Values::F32(vec![0.25]));
    assert_eq!(observation.instruction.as_deref(), Some("pick the pear"));
    assert_eq!((batch.batched, batch.seed, batch.ignored), (false, None, vec!["timestamp".to_owned()]));
}

#[test]
fn prefixes_may_be_absent_and_lists_may_stand_for_arrays() {
    let list = |values: &[f64]| Value::List(values.iter().map(|&x| Value::Float(x)).collect());
    let pixels = |n: usize| Value::List((0..n).map(|i| Value::Int(i as i128)).collect());
    let with = read(vec![("video.front", image(&[1, 1, 2, 3])), ("state.arm", f64s(&[1, 2], &[1.0, 2.0]))]);
    let without = read(vec![
        (
            "front",
            Value::List(vec![Value::List(vec![pixels(3), Value::List((3..6).map(Value::Int).collect())])]),
        ),
        ("arm", list(&[1.0, 2.0])),
    ]);
    assert_eq!(with.observations, without.observations);
    let nested = read(vec![("arm", Value::List(vec![list(&[1.0, 2.0])]))]);
    assert_eq!(nested.observations[0].state["arm"], Values::F64(vec![1.0, 2.0]));
    let scalar = read(vec![("gripper", Value::Float(0.5))]);
    assert_eq!(scalar.observations[0].state["gripper"], Values::F64(vec![0.5]));
}

#[test]
fn every_float_and_integer_dtype_is_a_state() {
    let values = [
        Elements::F16(vec![half::f16::from_f32(1.0); 2]),
        Elements::F32(vec![1.0; 2]),
        Elements::F64(vec![1.0; 2]),
        Elements::I64(vec![1; 2]),
        Elements::U8(vec![1; 2]),
    ];
    for elements in values {
        let batch = read(vec![("state.arm", array(&[1, 2], elements))]);
        assert_eq!(batch.observations[0].state["arm"].to_f64(), [1.0, 1.0]);
    }
    assert!(problems(vec![("state.arm", array(&[2], Elements::Bool(vec![true; 2])))]).contains("got bool"));
    assert!(problems(vec![("state.arm", Value::text("up"))]).contains("state.arm: got text, wanted floats"));
}

#[test]
fn leading_ones_of_an_unbatched_image_are_dropped() {
    for shape in [&[2, 4, 3][..], &[1, 2, 4, 3], &[1, 1, 2, 4, 3]] {
        let batch = read(vec![("video.front", image(shape)), ("state.arm", f64s(&[1, 2], &[0.0; 2]))]);
        assert_eq!(batch.observations[0].images["front"].height(), 2, "{shape:?}");
        assert!(!batch.batched);
    }
}

#[test]
fn images_of_another_kind_are_refused_with_a_hint() {
    let refused = |value: Value| problems(vec![("video.front", value)]);
    assert!(refused(image(&[1, 3, 4, 5])).contains("channels come first"));
    assert!(refused(image(&[1, 4, 5, 1])).contains("grey"));
    assert!(refused(image(&[1, 4, 5, 4])).contains("RGBA"));
    assert!(refused(image(&[4, 5])).contains("got shape [4, 5]"));
    assert!(refused(image(&[2, 4, 5, 3])).contains("one time step"));
    assert!(refused(image(&[1, 0, 5, 3])).contains("without pixels"));
    assert!(refused(array(&[1, 1, 3], Elements::F32(vec![0.5; 3]))).contains("got float32, wanted uint8"));
    assert!(refused(array(&[1, 1, 3], Elements::I64(vec![256; 3]))).contains("got int64, wanted uint8"));
    assert!(refused(Value::Bytes(vec![1])).contains("video.front: got 1 bytes"));
}

#[test]
fn a_batch_is_split_and_every_robot_gets_its_own() {
    let batch = read(vec![
        ("video.front", image(&[2, 1, 1, 1, 3])),
        ("state.arm", f64s(&[2, 1, 2], &[1.0, 2.0, 3.0, 4.0])),
        ("state.gripper", f64s(&[2, 1, 1], &[5.0, 6.0])),
        ("annotation.human.task_description", texts(&["a", "b"])),
    ]);
    assert!(batch.batched);
    let second = &batch.observations[1];
    assert_eq!(second.images["front"].rgb(), [3, 4, 5]);
    assert_eq!(second.state["arm"], Values::F64(vec![3.0, 4.0]));
    assert_eq!(second.instruction.as_deref(), Some("b"));

    let one_text = array(&[1], Elements::Text(vec!["same".into()]));
    let batch = read(vec![("state.arm", f64s(&[2, 1, 2], &[0.0; 4])), ("annotation.x", one_text)]);
    assert_eq!(batch.observations[1].instruction.as_deref(), Some("same"));
}

#[test]
fn batches_of_different_sizes_are_refused() {
    let message = problems(vec![
        ("video.front", image(&[3, 1, 1, 1, 3])),
        ("state.arm", f64s(&[2, 1, 2], &[0.0; 4])),
        ("annotation.x", texts(&["a", "b", "c"])),
    ]);
    assert!(message.contains("video.front: got shape [3, 1, 1, 1, 3], wanted a batch of 2"), "{message}");
    assert!(message.contains("annotation.x: got 3 texts, wanted 2"), "{message}");
    assert!(problems(vec![("state.arm", f64s(&[0, 1, 2], &[]))]).contains("batch of 0"));
    assert!(problems(vec![("state.arm", f64s(&[65, 1, 0], &[]))]).contains("batch of 65"));
}

#[test]
fn the_nested_form_of_n16_is_read() {
    let batch = read(vec![
        ("video", Value::map([("front", image(&[1, 1, 1, 1, 3]))])),
        ("state", Value::map([("arm", array(&[1, 1, 2], Elements::F32(vec![1.0, 2.0])))])),
        ("language", Value::map([("task", Value::List(vec![texts(&["stack"])]))])),
    ]);
    assert!(batch.batched);
    let [observation] = batch.observations.as_slice() else { panic!("{batch:?}") };
    assert_eq!(observation.state["arm"], Values::F32(vec![1.0, 2.0]));
    assert_eq!(observation.instruction.as_deref(), Some("stack"));
    assert!(observation.images.contains_key("front"));
}

#[test]
fn openpi_names_are_read() {
    let batch = read(vec![
        ("observation/image", image(&[1, 2, 3])),
        ("observation/wrist_image", image(&[2, 1, 3])),
        ("observation/state", array(&[3], Elements::F32(vec![1.0, 2.0, 3.0]))),
        ("prompt", Value::text("hi")),
    ]);
    let observation = &batch.observations[0];
    assert_eq!((observation.images["front"].width(), observation.images["wrist"].height()), (2, 2));
    assert_eq!(observation.state["arm"], Values::F32(vec![1.0, 2.0]));
    assert_eq!(observation.state["gripper"], Values::F32(vec![3.0]));
    assert_eq!(observation.instruction.as_deref(), Some("hi"));
    let short = problems(vec![("observation/state", f64s(&[2], &[0.0; 2]))]);
    assert!(short.contains("got 2 values, wanted 3: arm 2, gripper 1"), "{short}");
}

#[test]
fn an_instruction_comes_once_or_not_at_all() {
    assert_eq!(read(vec![]).observations[0].instruction, None);
    assert_eq!(read(vec![("annotation.a", Value::Null)]).observations[0].instruction, None);
    let two = problems(vec![("annotation.a", Value::text("x")), ("prompt", Value::text("y"))]);
    assert!(two.contains("2 instructions (annotation.a, prompt), wanted one"), "{two}");
    assert!(problems(vec![("annotation.a", Value::Int(3))]).contains("got an integer, wanted text"));
    assert!(problems(vec![("annotation.a", texts(&["x", "y"]))]).contains("got 2 texts, wanted 1"));
    assert!(problems(vec![("annotation.a", texts(&[]))]).contains("got 0 texts, wanted 1"));
}

#[test]
fn the_seed_is_a_whole_number() {
    let seed = |value: Value| read(vec![(SEED_KEY, value)]).seed;
    assert_eq!(seed(Value::Int(7)), Some(7));
    assert_eq!(seed(Value::Int(u64::MAX.into())), Some(u64::MAX));
    assert_eq!(seed(array(&[], Elements::I64(vec![7]))), Some(7));
    assert_eq!(seed(array(&[1], Elements::U32(vec![7]))), Some(7));
    assert_eq!(seed(Value::Null), None);
    for bad in [Value::Int(-1), Value::Float(1.0), Value::text("1"), f64s(&[1], &[1.0]), texts(&[])] {
        assert!(problems(vec![(SEED_KEY, bad)]).contains("one whole number"));
    }
    assert!(problems(vec![("gr00t_tt.sede", Value::Int(1))]).contains("wanted gr00t_tt.seed"));
}

fn chunk(start: f32) -> ActionChunk {
    let group = |key: &str, dim: usize, start: f32| ActionGroup {
        key: key.into(),
        dim,
        values: (0..2 * dim).map(|i| start + i as f32).collect(),
    };
    ActionChunk {
        horizon: 2,
        groups: vec![group("arm", 2, start), group("gripper", 1, start + 9.0)],
        out_of_range: 0,
    }
}

#[test]
fn actions_are_one_array_per_key_with_the_horizon_first() {
    let arrays = action_arrays(&[chunk(0.0)], false, "action.").unwrap();
    let wanted = array(&[2, 2], Elements::F32(vec![0.0, 1.0, 2.0, 3.0]));
    assert_eq!(arrays[0], ("action.arm".to_owned(), wanted));
    assert_eq!(arrays[1].0, "action.gripper");
    let arrays = action_arrays(&[chunk(0.0), chunk(4.0)], true, "").unwrap();
    let wanted = array(&[2, 2, 1], Elements::F32(vec![9.0, 10.0, 13.0, 14.0]));
    assert_eq!(arrays[1], ("gripper".to_owned(), wanted));
}

#[test]
fn the_action_matrix_has_all_keys_side_by_side() {
    let matrix = action_matrix(&[chunk(0.0)], false).unwrap();
    assert_eq!(matrix.shape(), [2, 3]);
    assert_eq!(matrix.elements(), &Elements::F32(vec![0.0, 1.0, 9.0, 2.0, 3.0, 10.0]));
}
