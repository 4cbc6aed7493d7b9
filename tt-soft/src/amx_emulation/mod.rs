//! AMX in software, for tests on CPUs without it: the kernels' own machine code runs, and a handler of SIGILL does what
//! the tile instructions would do.
//!
//! What a real CPU would refuse ends the process with a message. Speed is no aim: an instruction costs microseconds.
//! Nothing of it is compiled in unless the feature `amx-emulation` asks for it or this crate is tested.

mod instruction;
mod tiles;

use instruction::{Fault, Instruction};
use std::cell::{Cell, UnsafeCell};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use tiles::Tiles;

thread_local! {
    static TILES: UnsafeCell<Tiles> = const { UnsafeCell::new(Tiles::new()) };
    static COUNTS: Cell<Counts> = const { Cell::new(Counts::NONE) };
}

/// What SIGILL did before; set once the handler is there.
static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();
static ENABLED: AtomicBool = AtomicBool::new(false);

/// Instructions that were emulated on a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// `ldtilecfg`.
    pub configurations: u64,
    /// `tilerelease`.
    pub releases: u64,
    /// `tilezero`.
    pub zeros: u64,
    /// `tileloadd` and `tileloaddt1`.
    pub loads: u64,
    /// `tilestored`.
    pub stores: u64,
    /// `tdpbf16ps`.
    pub products: u64,
}

impl Counts {
    const NONE: Self = Self { configurations: 0, releases: 0, zeros: 0, loads: 0, stores: 0, products: 0 };

    /// What `work` makes the calling thread do.
    pub fn of(work: impl FnOnce()) -> Self {
        let before = COUNTS.replace(Self::NONE);
        work();
        COUNTS.replace(before)
    }
}

/// Makes [`crate::Isa::Amx`] available: as it is where the CPU has AMX, emulated where it has AVX-512 only. Says whether
/// it is available now. Call it before anything asks for the available levels.
pub fn enable() -> bool {
    if crate::Isa::Amx.is_available() {
        return true;
    }
    if !crate::Isa::Avx512.is_available() {
        return false;
    }
    install();
    ENABLED.store(true, Ordering::Release);
    true
}

/// Has [`enable`] had to emulate?
pub fn is_enabled() -> bool {
    ENABLED.load(Ordering::Acquire)
}

/// Takes SIGILL, once; an instruction that is not AMX's goes on to the handler that was there.
pub(crate) fn install() {
    PREVIOUS.get_or_init(|| {
        // SAFETY: a zeroed `sigaction` is one without flags and with an empty mask; both pointers are to such.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            let mut previous: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_sigill as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO;
            libc::sigaction(libc::SIGILL, &raw const action, &raw mut previous);
            previous
        }
    });
}

extern "C" fn on_sigill(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: with SA_SIGINFO the third argument is the interrupted thread's context, this handler's to change.
    let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    let at = registers[libc::REG_RIP as usize] as usize as *const u8;
    // SAFETY: `at` is the instruction that trapped; decoding reads no further than its encoding goes.
    match Instruction::decode(|i| unsafe { at.add(i).read() }) {
        Ok(None) => match PREVIOUS.get() {
            Some(previous) => pass_on(previous, signal, info, context),
            None => std::process::abort(),
        },
        Err(fault) => refuse(fault),
        Ok(Some((instruction, length))) => {
            let general = |number: u8| registers[ORDER[usize::from(number)]] as u64;
            // SAFETY: the tiles are this thread's, and it is inside this handler: nothing else uses them now. The
            // memory is what the kernel's own instruction would have touched.
            let done = TILES.with(|tiles| unsafe { (*tiles.get()).execute(instruction, &general) });
            if let Err(fault) = done {
                refuse(fault);
            }
            count(instruction);
            registers[libc::REG_RIP as usize] += length as i64;
        }
    }
}

/// Where the kernel puts the general registers, by their number in an instruction.
const ORDER: [usize; 16] = [
    libc::REG_RAX as usize,
    libc::REG_RCX as usize,
    libc::REG_RDX as usize,
    libc::REG_RBX as usize,
    libc::REG_RSP as usize,
    libc::REG_RBP as usize,
    libc::REG_RSI as usize,
    libc::REG_RDI as usize,
    libc::REG_R8 as usize,
    libc::REG_R9 as usize,
    libc::REG_R10 as usize,
    libc::REG_R11 as usize,
    libc::REG_R12 as usize,
    libc::REG_R13 as usize,
    libc::REG_R14 as usize,
    libc::REG_R15 as usize,
];

fn count(instruction: Instruction) {
    COUNTS.with(|counts| {
        let mut now = counts.get();
        *match instruction {
            Instruction::LoadConfig(_) => &mut now.configurations,
            Instruction::Release => &mut now.releases,
            Instruction::Zero { .. } => &mut now.zeros,
            Instruction::Load { .. } => &mut now.loads,
            Instruction::Store { .. } => &mut now.stores,
            Instruction::Dot { .. } => &mut now.products,
        } += 1;
        counts.set(now);
    });
}

/// Ends the process: a kernel did what a CPU with AMX would trap. Takes no lock, and goes past the capture of test output.
fn refuse(Fault(fault): Fault) -> ! {
    for text in ["emulated AMX instruction: ", fault, "\n"] {
        // SAFETY: writes the bytes of `text`.
        unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
    }
    std::process::abort();
}

type Handler = extern "C" fn(libc::c_int);
type InfoHandler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

/// Hands a signal that is not AMX's to the handler that was there; without one the instruction traps again and ends
/// the process, as it would have.
fn pass_on(
    previous: &libc::sigaction,
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    let handler = previous.sa_sigaction;
    // SAFETY: the default action is restored as it was read; a handler has the signature that its flags say.
    unsafe {
        if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
            libc::sigaction(signal, previous, std::ptr::null_mut());
        } else if previous.sa_flags & libc::SA_SIGINFO != 0 {
            std::mem::transmute::<usize, InfoHandler>(handler)(signal, info, context);
        } else {
            std::mem::transmute::<usize, Handler>(handler)(signal);
        }
    }
}

#[cfg(test)]
mod tests;
