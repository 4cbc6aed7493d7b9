//! A decoded message → observations, by the rules of upstream's policies: `Gr00tPolicy` of N1.5 (flat keys, `video.` and
//! `state.`), of N1.6 (nested maps), and openpi's clients (`observation/…`, `prompt`).

use gr00t_host::Observation;

use super::error::{CodecError, Result};
use super::field::{self, Numbers};
use super::value::Value;

/// The optional key that makes the noise, and so the actions, repeatable.
pub const SEED_KEY: &str = "gr00t_tt.seed";
/// Start of the keys that are ours and not upstream's.
const OWN_PREFIX: &str = "gr00t_tt.";
/// Most observations in one message.
pub const MAX_BATCH: usize = 64;
/// Most keys in one message; a robot has a dozen.
const MAX_KEYS: usize = 256;

/// The names that the served robot reads, in the model's order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RobotKeys {
    /// Cameras, without `video.`.
    pub cameras: Vec<String>,
    /// State keys, without `state.`, and their number of values.
    pub state: Vec<(String, usize)>,
}

/// The observations of one message.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// One or more.
    pub observations: Vec<Observation>,
    /// Whether the message had a batch dimension, so that its reply has one.
    pub batched: bool,
    /// What [`SEED_KEY`] says.
    pub seed: Option<u64>,
    /// Keys that nobody knows, which upstream ignores.
    pub ignored: Vec<String>,
}

/// What a key is.
enum Role {
    Video(String),
    State(String),
    /// All state keys in one vector.
    StateVector,
    Instruction,
    Seed,
    Unknown,
}

/// Everything in a message, by role.
#[derive(Default)]
struct Parts {
    video: Vec<(String, Value)>,
    state: Vec<(String, Value)>,
    state_vector: Option<(String, Value)>,
    instructions: Vec<(String, Value)>,
    seed: Option<u64>,
    ignored: Vec<String>,
    problems: Vec<String>,
}

/// Turns a message into observations. It is batched if every state has three dimensions or more, as upstream decides;
/// without any state, if every image has five.
///
/// # Errors
/// [`CodecError::Observation`] with every problem: types, shapes, time steps, batch sizes, two instructions. Keys that are
/// missing are the encoder's to find.
pub fn observations(message: Value, robot: &RobotKeys) -> Result<Batch> {
    let Value::Map(pairs) = message else {
        return Err(CodecError::Observation(vec![format!("got {}, wanted a map of keys", message.kind())]));
    };
    let mut parts = Parts::default();
    for (key, value) in pairs {
        parts.add(key, value, robot);
    }
    let keys = parts.keys();
    if keys > MAX_KEYS {
        return Err(CodecError::TooLarge { what: "number of keys", got: keys, most: MAX_KEYS });
    }
    parts.assemble(robot)
}

fn role(key: &str, value: &Value, robot: &RobotKeys) -> Role {
    if key == SEED_KEY {
        return Role::Seed;
    }
    if let Some(name) = key.strip_prefix("video.") {
        return Role::Video(name.to_owned());
    }
    if let Some(name) = key.strip_prefix("state.") {
        return Role::State(name.to_owned());
    }
    if key.contains("annotation") || matches!(key, "prompt" | "task" | "instruction" | "language") {
        return Role::Instruction;
    }
    let name = key.strip_prefix("observation/").unwrap_or(key);
    let is_camera = |wanted: &str| robot.cameras.iter().any(|camera| camera == wanted);
    let wrist = || robot.cameras.iter().find(|camera| camera.contains("wrist"));
    match name {
        _ if is_camera(name) => Role::Video(name.to_owned()),
        _ if robot.state.iter().any(|(key, _)| key == name) => Role::State(name.to_owned()),
        "state" if !matches!(value, Value::Map(_)) => Role::StateVector,
        "wrist_image" => wrist().map_or(Role::Unknown, |camera| Role::Video(camera.clone())),
        "image" => {
            let first = robot.cameras.iter().find(|camera| Some(*camera) != wrist());
            first.or(robot.cameras.first()).map_or(Role::Unknown, |camera| Role::Video(camera.clone()))
        }
        _ => Role::Unknown,
    }
}

impl Parts {
    fn add(&mut self, key: String, value: Value, robot: &RobotKeys) {
        // N1.6 nests: {"video": {…}, "state": {…}, "language": {…}}
        let value = match (key.as_str(), value) {
            ("video" | "images", Value::Map(pairs)) => return self.video.extend(pairs),
            ("state", Value::Map(pairs)) => return self.state.extend(pairs),
            ("language" | "annotation", Value::Map(pairs)) => return self.instructions.extend(pairs),
            (_, value) => value,
        };
        match role(&key, &value, robot) {
            Role::Video(name) => self.video.push((name, value)),
            Role::State(name) => self.state.push((name, value)),
            Role::StateVector => self.state_vector = Some((key, value)),
            Role::Instruction => self.instructions.push((key, value)),
            Role::Seed => match seed(value) {
                Ok(seed) => self.seed = seed,
                Err(problem) => self.problems.push(format!("{key}: {problem}")),
            },
            Role::Unknown if key.starts_with(OWN_PREFIX) => {
                self.problems.push(format!("{key} is unknown, wanted {SEED_KEY}"));
            }
            Role::Unknown => self.ignored.push(key),
        }
    }

    fn keys(&self) -> usize {
        [self.video.len(), self.state.len(), self.instructions.len(), self.ignored.len(), self.problems.len()]
            .iter()
            .sum()
    }

    /// The size of the batch, if there is one.
    fn batch(&self) -> Option<usize> {
        let (fields, wanted) = if self.state.is_empty() { (&self.video, 5) } else { (&self.state, 3) };
        let all = fields.iter().all(|(_, value)| field::rank(value) >= wanted);
        let (_, first) = fields.first()?;
        if all && self.state_vector.is_none() { field::first_length(first) } else { None }
    }

    fn assemble(mut self, robot: &RobotKeys) -> Result<Batch> {
        let batch = self.batch();
        let count = batch.unwrap_or(1);
        if !(1..=MAX_BATCH).contains(&count) {
            return Err(CodecError::Observation(vec![format!("batch of {count}, wanted 1 to {MAX_BATCH}")]));
        }
        let mut observations = vec![Observation::default(); count];
        let mut problems = std::mem::take(&mut self.problems);
        for (key, value) in self.video {
            let frames = Numbers::new(value, "uint8 [1, height, width, 3]").and_then(|n| n.frames(batch));
            let each = observations.iter_mut().map(|o| &mut o.images);
            keep(&mut problems, "video", &key, frames, each, |images, key, frame| {
                images.insert(key, frame).is_some()
            });
        }
        for (key, value) in self.state {
            let rows = Numbers::new(value, "floats").and_then(|n| n.rows(batch));
            let each = observations.iter_mut().map(|o| &mut o.state);
            keep(&mut problems, "state", &key, rows, each, |state, key, row| {
                state.insert(key, row).is_some()
            });
        }
        if let (Some((key, value)), Some(observation)) = (self.state_vector, observations.first_mut()) {
            match state_vector(value, robot) {
                Ok(rows) => observation.state.extend(rows),
                Err(problem) => problems.push(format!("{key}: {problem}")),
            }
        }
        match self.instructions.as_slice() {
            [] | [(_, Value::Null)] => {}
            [(key, value)] => match field::texts(value, batch) {
                Ok(texts) => {
                    for (observation, text) in observations.iter_mut().zip(texts) {
                        observation.instruction = Some(text);
                    }
                }
                Err(problem) => problems.push(format!("{key}: {problem}")),
            },
            several => {
                let keys: Vec<&str> = several.iter().map(|(key, _)| key.as_str()).collect();
                problems.push(format!("{} instructions ({}), wanted one", keys.len(), keys.join(", ")));
            }
        }
        if !problems.is_empty() {
            return Err(CodecError::Observation(problems));
        }
        Ok(Batch { observations, batched: batch.is_some(), seed: self.seed, ignored: self.ignored })
    }
}

/// Gives each observation its part of a field, or notes what is wrong with it.
fn keep<'o, M: 'o, T>(
    problems: &mut Vec<String>,
    modality: &str,
    key: &str,
    parts: Result<Vec<T>, String>,
    each: impl Iterator<Item = &'o mut M>,
    insert: impl Fn(&mut M, String, T) -> bool,
) {
    match parts {
        Ok(parts) => {
            let twice =
                each.zip(parts).fold(false, |twice, (map, part)| insert(map, key.to_owned(), part) || twice);
            if twice {
                problems.push(format!("{modality}.{key} comes twice, under two names"));
            }
        }
        Err(problem) => problems.push(format!("{modality}.{key}: {problem}")),
    }
}

/// One vector of all state keys, cut up in the model's order.
fn state_vector(
    value: Value,
    robot: &RobotKeys,
) -> Result<Vec<(String, gr00t_host::observation::Values)>, String> {
    use gr00t_host::observation::Values;

    let row = Numbers::new(value, "floats")?.rows(None)?.into_iter().next().ok_or("no values")?;
    let wanted: usize = robot.state.iter().map(|(_, dim)| dim).sum();
    if row.len() != wanted {
        let keys: Vec<String> = robot.state.iter().map(|(key, dim)| format!("{key} {dim}")).collect();
        return Err(format!("got {} values, wanted {wanted}: {}", row.len(), keys.join(", ")));
    }
    let mut start = 0;
    let piece = |(key, dim): &(String, usize)| {
        let range = start..start + dim;
        start = range.end;
        let values = match &row {
            Values::F32(v) => Values::F32(v.get(range).unwrap_or_default().to_vec()),
            Values::F64(v) => Values::F64(v.get(range).unwrap_or_default().to_vec()),
        };
        (key.clone(), values)
    };
    Ok(robot.state.iter().map(piece).collect())
}

/// A seed as a number, or as an array or list with one.
fn seed(value: Value) -> Result<Option<u64>, String> {
    const WANTED: &str = "one whole number from 0 to 18446744073709551615";
    let got = value.kind();
    let refusal = || format!("got {got}, wanted {WANTED}");
    match value {
        Value::Null => Ok(None),
        Value::Int(x) => u64::try_from(x).map(Some).map_err(|_| refusal()),
        Value::List(mut items) if items.len() == 1 => items.pop().map_or(Ok(None), seed),
        Value::Array(array) => {
            use super::array::Elements as E;
            let one = match array.elements() {
                E::U8(v) => v.first().map(|&x| u64::from(x)),
                E::U16(v) => v.first().map(|&x| u64::from(x)),
                E::U32(v) => v.first().map(|&x| u64::from(x)),
                E::U64(v) => v.first().copied(),
                E::I8(v) => v.first().and_then(|&x| u64::try_from(x).ok()),
                E::I16(v) => v.first().and_then(|&x| u64::try_from(x).ok()),
                E::I32(v) => v.first().and_then(|&x| u64::try_from(x).ok()),
                E::I64(v) => v.first().and_then(|&x| u64::try_from(x).ok()),
                _ => None,
            };
            match one {
                Some(seed) if array.elements().len() == 1 => Ok(Some(seed)),
                _ => Err(refusal()),
            }
        }
        _ => Err(refusal()),
    }
}
