//! A receding-horizon control loop: predict a chunk of 16 steps, execute the first 8, look again.
//!
//! The robot is a stand-in that moves its joints to where it is told, and the weights are synthetic, so the motion means
//! nothing; the loop is the one for a real robot. Run with
//! `cargo run --release -p gr00t-model --example receding_horizon`.

use std::collections::BTreeMap;
use std::error::Error;
use std::time::{Duration, Instant};

use gr00t_host::ModelConfig;
use gr00t_host::action::ActionChunk;
use gr00t_host::checkpoint::{Checkpoint, OpenOptions, WeightsSpec};
use gr00t_host::embodiment::DataConfig;
use gr00t_host::image::Frame;
use gr00t_host::observation::{Observation, Values};
use gr00t_model::{CancelToken, ModelError, Policy, PredictOptions};
use tt_ops::Soft;

/// Steps of each chunk that are executed before the next one is predicted.
const EXECUTED_STEPS: usize = 8;
/// Chunks that this run predicts.
const CHUNKS: u64 = 5;
/// A chunk that takes longer is of no use: the robot has moved on.
const DEADLINE: Duration = Duration::from_secs(30);
/// Joints of GR1's arms and hands.
const JOINTS: [(&str, usize); 4] = [("left_arm", 7), ("right_arm", 7), ("left_hand", 6), ("right_hand", 6)];

/// Stands in for a robot: joint angles that follow commands at once, a camera that sees grey.
struct Robot {
    joints_rad: BTreeMap<&'static str, Vec<f64>>,
}

impl Robot {
    fn new() -> Self {
        Self { joints_rad: JOINTS.into_iter().map(|(key, dim)| (key, vec![0.0; dim])).collect() }
    }

    fn observe(&self) -> Result<Observation, Box<dyn Error>> {
        let camera = Frame::new(256, 256, vec![128; 256 * 256 * 3])?;
        Ok(Observation {
            images: BTreeMap::from([("ego_view".into(), camera)]),
            state: self
                .joints_rad
                .iter()
                .map(|(key, joints)| ((*key).into(), Values::F64(joints.clone())))
                .collect(),
            instruction: Some("pick up the pear and put it on the plate".into()),
        })
    }

    /// One control step: every joint to its target.
    fn execute(&mut self, chunk: &ActionChunk, step: usize) {
        for group in &chunk.groups {
            if let Some(joints) = self.joints_rad.get_mut(group.key.as_str()) {
                *joints = group.step(step).iter().copied().map(f64::from).collect();
            }
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let spec = WeightsSpec::Synthetic { seed: 3 };
    let checkpoint = Checkpoint::open(&spec, &OpenOptions::new().config(ModelConfig::mini()))?;
    let policy = Policy::builder(&checkpoint, Soft::open()?)
        .data_config(DataConfig::builtin("fourier_gr1_arms_only")?)
        .build()?;
    let mut robot = Robot::new();
    // so that the first chunk is as fast as the others
    policy.prepare(&robot.observe()?, &PredictOptions::new())?;

    for chunk in 0..CHUNKS {
        let observation = robot.observe()?;
        let cancel = CancelToken::new();
        let options = PredictOptions::new().seed(chunk).cancel_token(cancel.clone());
        let prediction = std::thread::scope(|scope| {
            let (done, waits) = std::sync::mpsc::channel::<()>();
            // a stage that runs is not interrupted: the token is asked before the next one
            scope.spawn(move || {
                if waits.recv_timeout(DEADLINE).is_err() {
                    cancel.cancel();
                }
            });
            let started = Instant::now();
            let prediction = policy.predict_with(&observation, &options);
            println!("chunk {chunk}: {:.1} ms", started.elapsed().as_secs_f64() * 1e3);
            // the watch may have gone home already
            let _ = done.send(());
            prediction
        });
        match prediction {
            Ok(prediction) => {
                for timing in &prediction.timings.model.stages {
                    println!("  {:8} {:6.1} ms", timing.stage, timing.elapsed.as_secs_f64() * 1e3);
                }
                for step in 0..EXECUTED_STEPS.min(prediction.chunk.horizon) {
                    robot.execute(&prediction.chunk, step);
                }
            }
            // too late: hold still and look again
            Err(ModelError::Cancelled { before }) => println!("  too late, stopped before {before}"),
            Err(error) => return Err(error.into()),
        }
    }
    println!("left arm at {:.2?} rad", robot.joints_rad.get("left_arm"));
    Ok(())
}
