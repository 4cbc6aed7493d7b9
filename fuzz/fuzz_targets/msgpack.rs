//! Both msgpack forms of the wire (NVIDIA's whole `.npy` files and msgpack-numpy), and the observations in them.
#![no_main]

use gr00t_serve::codec::{Limits, RobotKeys, msg_serializer, msgpack_numpy, observations};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let robot = RobotKeys {
        cameras: vec!["front".into(), "wrist".into()],
        state: vec![("arm".into(), 5), ("gripper".into(), 1)],
    };
    let limits = Limits::default();
    if let Ok(value) = msg_serializer::decode(bytes, limits) {
        let written = msg_serializer::encode(&value);
        let again = msg_serializer::decode(&written, limits).expect("what was written is readable");
        assert_eq!(msg_serializer::encode(&again), written);
        let _ = observations(value, &robot);
    }
    if let Ok((value, dialect)) = msgpack_numpy::decode(bytes, limits) {
        let written = msgpack_numpy::encode(&value, dialect);
        let (again, _) = msgpack_numpy::decode(&written, limits).expect("what was written is readable");
        assert_eq!(msgpack_numpy::encode(&again, dialect), written);
        let _ = observations(value, &robot);
    }
});
