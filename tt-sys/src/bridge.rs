//! The bridge: what crosses between Rust and the C++ layer in `cpp/`. Every function that can fail returns `Result`:
//! an exception that met one without would end the process.

#[cxx::bridge(namespace = "tt_sys")]
#[allow(unreachable_pub, reason = "cxx makes every shared type public")]
#[allow(missing_docs, reason = "private to the crate; the wrappers document what these mean")]
#[allow(clippy::too_many_arguments, reason = "TTNN's argument lists")]
pub(crate) mod ffi {
    struct OpenOptions {
        device_id: i32,
        l1_small_size: usize,
        trace_region_size: usize,
    }

    struct DeviceFacts {
        arch: String,
        grid_x: u32,
        grid_y: u32,
        dram_banks: u32,
        dram_bank_bytes: u64,
        l1_bytes: u64,
        clock_mhz: u32,
    }

    struct MemoryUse {
        banks: u64,
        total_per_bank: u64,
        allocated_per_bank: u64,
        largest_free_per_bank: u64,
    }

    struct Resources {
        circular_buffers: u64,
        l1_buffers: u64,
        l1_total: u64,
    }

    /// In this memory; for a layout other than 0, interleaved, in shards of that shape on a rectangle of cores at the origin.
    #[derive(Clone, Copy)]
    struct Placement {
        buffer_type: u8,
        memory_layout: u8,
        grid_x: u32,
        grid_y: u32,
        shard_height: u32,
        shard_width: u32,
    }

    struct Spec {
        shape: Vec<u32>,
        dtype: u8,
        layout: u8,
        placement: Placement,
    }

    #[derive(Clone, Copy)]
    struct Compute {
        fidelity: u8,
        approximate: bool,
        fp32_dest: bool,
        packer_l1: bool,
    }

    #[derive(Clone, Copy)]
    struct Program {
        kind: u8,
        grid_x: u32,
        grid_y: u32,
        in0_block_w: u32,
        out_subblock_h: u32,
        out_subblock_w: u32,
        per_core_m: u32,
        per_core_n: u32,
    }

    unsafe extern "C++" {
        include!("tt_sys/handles.h");

        type Device;
        type Tensor;

        fn open_device(options: &OpenOptions) -> Result<UniquePtr<Device>>;
        fn close_device(device: &Device) -> Result<()>;
        fn device_is_open(device: &Device) -> Result<bool>;
        fn device_facts(device: &Device) -> Result<DeviceFacts>;
        fn synchronize(device: &Device) -> Result<()>;
        fn memory_use(device: &Device, buffer_type: u8) -> Result<MemoryUse>;
        fn begin_query(device: &Device) -> Result<()>;
        fn end_query(device: &Device) -> Result<Resources>;
        fn runtime_version() -> Result<String>;
        fn count_programs(device: &Device) -> Result<()>;
        fn programs_counted(device: &Device) -> Result<u64>;

        fn begin_trace(device: &Device) -> Result<u32>;
        fn end_trace(device: &Device, trace: u32) -> Result<()>;
        fn execute_trace(device: &Device, trace: u32, blocking: bool) -> Result<()>;
        fn release_trace(device: &Device, trace: u32) -> Result<()>;

        fn no_tensor() -> Result<UniquePtr<Tensor>>;
        fn from_floats(device: &Device, spec: &Spec, values: &[f32]) -> Result<UniquePtr<Tensor>>;
        fn from_u32(device: &Device, spec: &Spec, values: &[u32]) -> Result<UniquePtr<Tensor>>;
        fn from_i32(device: &Device, spec: &Spec, values: &[i32]) -> Result<UniquePtr<Tensor>>;
        fn allocate(device: &Device, spec: &Spec) -> Result<UniquePtr<Tensor>>;
        fn write_floats(tensor: &Tensor, values: &[f32]) -> Result<()>;
        fn write_u32(tensor: &Tensor, values: &[u32]) -> Result<()>;
        fn write_i32(tensor: &Tensor, values: &[i32]) -> Result<()>;
        fn read_floats(tensor: &Tensor, out: &mut [f32]) -> Result<()>;
        fn read_u32(tensor: &Tensor, out: &mut [u32]) -> Result<()>;
        fn read_i32(tensor: &Tensor, out: &mut [i32]) -> Result<()>;
        fn tensor_spec(tensor: &Tensor) -> Result<Spec>;
        fn tensor_address(tensor: &Tensor) -> Result<u64>;
        fn tensor_is_allocated(tensor: &Tensor) -> Result<bool>;
        fn deallocate(tensor: &Tensor) -> Result<()>;
        fn dump_tensor(tensor: &Tensor, path: &str) -> Result<()>;
        fn load_tensor(device: &Device, path: &str) -> Result<UniquePtr<Tensor>>;

        fn linear(
            x: &Tensor,
            w: &Tensor,
            bias: &Tensor,
            activation: u8,
            transpose_a: bool,
            transpose_b: bool,
            dtype: u8,
            placement: Placement,
            compute: &Compute,
            program: &Program,
        ) -> Result<UniquePtr<Tensor>>;
        fn binary(
            a: &Tensor,
            b: &Tensor,
            op: u8,
            activations: &[u8],
            dtype: u8,
            placement: Placement,
        ) -> Result<UniquePtr<Tensor>>;
        fn binary_scalar(
            a: &Tensor,
            b: f32,
            op: u8,
            activations: &[u8],
            dtype: u8,
            placement: Placement,
        ) -> Result<UniquePtr<Tensor>>;
        fn unary(x: &Tensor, op: u8, placement: Placement) -> Result<UniquePtr<Tensor>>;
        fn layer_norm(
            x: &Tensor,
            epsilon: f32,
            weight: &Tensor,
            bias: &Tensor,
            placement: Placement,
            compute: &Compute,
        ) -> Result<UniquePtr<Tensor>>;
        fn rms_norm(
            x: &Tensor,
            epsilon: f32,
            weight: &Tensor,
            placement: Placement,
            compute: &Compute,
        ) -> Result<UniquePtr<Tensor>>;
        fn softmax(x: &Tensor, placement: Placement, compute: &Compute) -> Result<UniquePtr<Tensor>>;
        fn attention(
            q: &Tensor,
            k: &Tensor,
            v: &Tensor,
            mask: &Tensor,
            is_causal: bool,
            scale: f32,
            q_chunk: u32,
            k_chunk: u32,
            grid_x: u32,
            grid_y: u32,
            placement: Placement,
            compute: &Compute,
        ) -> Result<UniquePtr<Tensor>>;
        fn rotary_embedding(
            x: &Tensor,
            cos: &Tensor,
            sin: &Tensor,
            placement: Placement,
            compute: &Compute,
        ) -> Result<UniquePtr<Tensor>>;
        fn create_heads(
            qkv: &Tensor,
            kv: &Tensor,
            num_heads: u32,
            num_kv_heads: u32,
            transpose_key: bool,
            placement: Placement,
            q: Pin<&mut Tensor>,
            k: Pin<&mut Tensor>,
            v: Pin<&mut Tensor>,
        ) -> Result<()>;
        fn concat_heads(x: &Tensor, placement: Placement) -> Result<UniquePtr<Tensor>>;
        fn embedding(
            ids: &Tensor,
            table: &Tensor,
            dtype: u8,
            placement: Placement,
        ) -> Result<UniquePtr<Tensor>>;
        fn concat_begin(device: &Device) -> Result<()>;
        fn concat_push(device: &Device, x: &Tensor) -> Result<()>;
        fn concat_end(device: &Device, dim: i32, placement: Placement) -> Result<UniquePtr<Tensor>>;
        fn slice(
            x: &Tensor,
            begins: &[u32],
            ends: &[u32],
            step: &[u32],
            placement: Placement,
        ) -> Result<UniquePtr<Tensor>>;
        fn pad(x: &Tensor, after: &[u32], value: f32, placement: Placement) -> Result<UniquePtr<Tensor>>;
        fn reshape(x: &Tensor, shape: &[u32], placement: Placement) -> Result<UniquePtr<Tensor>>;
        fn permute(x: &Tensor, dims: &[u32], placement: Placement) -> Result<UniquePtr<Tensor>>;
        fn typecast(x: &Tensor, dtype: u8, placement: Placement) -> Result<UniquePtr<Tensor>>;
        fn to_layout(x: &Tensor, layout: u8, placement: Placement) -> Result<UniquePtr<Tensor>>;
        fn to_memory_config(x: &Tensor, dtype: u8, placement: Placement) -> Result<UniquePtr<Tensor>>;
        fn clone_tensor(x: &Tensor, placement: Placement) -> Result<UniquePtr<Tensor>>;
    }
}
