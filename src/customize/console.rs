//! The console of the installed system, in the syntax of the kernel's `console=` argument.
//!
//! ```text
//! (ttyS | ttyAMA) N [ , SPEED [ (n | o | e) [ 5..8 ] ] ]
//! tty0 | hvc0 | ttysclp0
//! ```
//!
//! Only consoles that a boot loader can be configured for are supported. Missing serial settings mean 9600 baud, no
//! parity and 8 data bits; the output always contains them.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};

use super::from_text::from_text;

const KARG_PREFIX: &str = "console=";

const DEFAULT_SPEED: u32 = 9600;

/// Maximum length of a line in the hint about kernel arguments.
const HINT_WIDTH: usize = 80;

/// A console for both the kernel and the boot loader.
///
/// # Examples
///
/// ```
/// use kindling::customize::console::Console;
///
/// let console: Console = "ttyS0,115200".parse()?;
/// assert_eq!(console.to_string(), "ttyS0,115200n8");
/// assert_eq!(console.karg(), "console=ttyS0,115200n8");
/// # Ok::<(), kindling::customize::console::ConsoleError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(into = "String")]
#[non_exhaustive]
pub enum Console {
    /// A screen, or the terminal of a hypervisor or mainframe.
    Graphical(GraphicalDevice),
    /// A serial port.
    Serial(SerialPort),
}

/// A console without settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GraphicalDevice {
    /// `tty0`: the current virtual terminal.
    Tty0,
    /// `hvc0`: the hypervisor's console.
    Hvc0,
    /// `ttysclp0`: the operator's terminal of an IBM Z machine.
    Ttysclp0,
}

/// A serial console with its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SerialPort {
    driver: SerialDriver,
    number: u8,
    speed: u32,
    parity: Parity,
    data_bits: DataBits,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SerialDriver {
    TtyS,
    TtyAma,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parity {
    None,
    Odd,
    Even,
}

/// The number of data bits, as a digit from 5 to 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DataBits(char);

/// The reason why a console is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConsoleError {
    /// The text starts with `console=` or `/dev/`, which must be left out.
    #[error("console {spec:?}: spec should not start with {prefix:?}")]
    Prefix {
        /// The complete text of the console.
        spec: String,
        /// The prefix, which the user must remove.
        prefix: &'static str,
    },
    /// The port number is above 255.
    #[error("console {spec:?}: couldn't parse port {port}")]
    Port {
        /// The complete text of the console.
        spec: String,
        /// The port number in the text.
        port: String,
        /// The reason why the number is invalid.
        #[source]
        source: ParseIntError,
    },
    /// The speed is above 4294967295.
    #[error("console {spec:?}: couldn't parse speed {speed}")]
    Speed {
        /// The complete text of the console.
        spec: String,
        /// The speed in the text.
        speed: String,
        /// The reason why the speed is invalid.
        #[source]
        source: ParseIntError,
    },
    /// The text is not a supported console.
    #[error(
        "console {spec:?}: invalid or unsupported console argument; expected tty0, hvc0, ttysclp0, \
         or ttyS0 or ttyAMA0 followed by settings such as \",115200n8\""
    )]
    Unknown {
        /// The complete text of the console.
        spec: String,
    },
}

impl Console {
    /// Returns the kernel argument that selects this console.
    #[must_use]
    pub fn karg(&self) -> String {
        format!("{KARG_PREFIX}{self}")
    }
}

impl FromStr for Console {
    type Err = ConsoleError;

    fn from_str(spec: &str) -> Result<Self, ConsoleError> {
        for prefix in [KARG_PREFIX, "/dev/"] {
            if spec.starts_with(prefix) {
                return Err(ConsoleError::Prefix { spec: spec.to_owned(), prefix });
            }
        }
        match spec {
            "tty0" => Ok(Self::Graphical(GraphicalDevice::Tty0)),
            "hvc0" => Ok(Self::Graphical(GraphicalDevice::Hvc0)),
            "ttysclp0" => Ok(Self::Graphical(GraphicalDevice::Ttysclp0)),
            _ => SerialPort::parse(spec).map(Self::Serial),
        }
    }
}

impl SerialPort {
    fn parse(spec: &str) -> Result<Self, ConsoleError> {
        let Some(parts) = SerialParts::split(spec) else {
            return Err(ConsoleError::Unknown { spec: spec.to_owned() });
        };
        let number = parts.number.parse().map_err(|source| ConsoleError::Port {
            spec: spec.to_owned(),
            port: parts.number.to_owned(),
            source,
        })?;
        let speed = parts.speed.map_or(Ok(DEFAULT_SPEED), str::parse);
        let speed = speed.map_err(|source| ConsoleError::Speed {
            spec: spec.to_owned(),
            speed: parts.speed.unwrap_or_default().to_owned(),
            source,
        })?;
        Ok(Self { driver: parts.driver, number, speed, parity: parts.parity, data_bits: parts.data_bits })
    }
}

/// The parts of the text of a serial console, with unparsed numbers.
struct SerialParts<'a> {
    driver: SerialDriver,
    number: &'a str,
    speed: Option<&'a str>,
    parity: Parity,
    data_bits: DataBits,
}

impl<'a> SerialParts<'a> {
    fn split(spec: &'a str) -> Option<Self> {
        let (driver, rest) = if let Some(rest) = spec.strip_prefix("ttyS") {
            (SerialDriver::TtyS, rest)
        } else {
            (SerialDriver::TtyAma, spec.strip_prefix("ttyAMA")?)
        };
        let (number, rest) = split_digits(rest)?;
        let mut parts = Self { driver, number, speed: None, parity: Parity::None, data_bits: DataBits('8') };
        if rest.is_empty() {
            return Some(parts);
        }
        let (speed, rest) = split_digits(rest.strip_prefix(',')?)?;
        parts.speed = Some(speed);
        let mut rest = rest.chars();
        if let Some(parity) = rest.next() {
            parts.parity = Parity::from_letter(parity)?;
        }
        match rest.next() {
            None => {}
            Some(bits @ '5'..='8') => parts.data_bits = DataBits(bits),
            Some(_) => return None,
        }
        rest.as_str().is_empty().then_some(parts)
    }
}

/// Splits off one or more leading digits.
fn split_digits(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

impl Parity {
    fn from_letter(letter: char) -> Option<Self> {
        match letter {
            'n' => Some(Self::None),
            'o' => Some(Self::Odd),
            'e' => Some(Self::Even),
            _ => None,
        }
    }

    fn letter(self) -> char {
        match self {
            Self::None => 'n',
            Self::Odd => 'o',
            Self::Even => 'e',
        }
    }
}

impl fmt::Display for Console {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Graphical(device) => device.fmt(f),
            Self::Serial(port) => port.fmt(f),
        }
    }
}

impl fmt::Display for GraphicalDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tty0 => "tty0",
            Self::Hvc0 => "hvc0",
            Self::Ttysclp0 => "ttysclp0",
        })
    }
}

impl fmt::Display for SerialPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let driver = match self.driver {
            SerialDriver::TtyS => "ttyS",
            SerialDriver::TtyAma => "ttyAMA",
        };
        let Self { number, speed, .. } = self;
        write!(f, "{driver}{number},{speed}{}{}", self.parity.letter(), self.data_bits.0)
    }
}

impl<'de> Deserialize<'de> for Console {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text(deserializer)
    }
}

impl From<Console> for String {
    fn from(console: Console) -> Self {
        console.to_string()
    }
}

/// Returns a hint to set consoles of the installed system with `--dest-console`, because kernel arguments do not
/// configure the boot loader.
///
/// Returns `None` if no argument sets a console, or if an argument sets a console that `--dest-console` does not
/// support.
#[must_use]
pub fn karg_hint(kargs: &[String]) -> Option<String> {
    let specs: Vec<&str> = kargs.iter().filter_map(|karg| karg.strip_prefix(KARG_PREFIX)).collect();
    if specs.is_empty() || specs.iter().any(|spec| spec.parse::<Console>().is_err()) {
        return None;
    }
    let options = |option: &str| {
        let options: Vec<String> = specs.iter().map(|spec| format!("{option}{spec}")).collect();
        format!("\"{}\"", options.join(" "))
    };
    let better = options("--dest-console ");
    let current = options("--dest-karg-append console=");
    let words = ["Note:", "consider", "using", &better, "instead", "of", &current];
    let purpose = ["to", "configure", "both", "kernel", "and", "bootloader", "consoles."];
    Some(format!("\n{}\n", wrap_words(words.into_iter().chain(purpose))))
}

/// Joins words into lines of at most [`HINT_WIDTH`] characters. A longer word gets its own line.
fn wrap_words<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let mut text = String::new();
    let mut column = 0_usize;
    for word in words {
        let width = word.chars().count();
        let end = column.saturating_add(1).saturating_add(width);
        if text.is_empty() {
            column = width;
        } else if end > HINT_WIDTH {
            text.push('\n');
            column = width;
        } else {
            text.push(' ');
            column = end;
        }
        text.push_str(word);
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn missing_settings_get_defaults() {
        for (spec, normal) in [
            ("tty0", "tty0"),
            ("hvc0", "hvc0"),
            ("ttysclp0", "ttysclp0"),
            ("ttyS0", "ttyS0,9600n8"),
            ("ttyAMA12", "ttyAMA12,9600n8"),
            ("ttyS255,115200", "ttyS255,115200n8"),
            ("ttyS1,300o", "ttyS1,300o8"),
            ("ttyS1,300e7", "ttyS1,300e7"),
            ("ttyS007,000300n5", "ttyS7,300n5"),
        ] {
            let console: Console = spec.parse().unwrap();
            assert_eq!(console.to_string(), normal, "{spec}");
            assert_eq!(console.karg(), format!("console={normal}"));
        }
    }

    #[test]
    fn rejects_unsupported_consoles() {
        for spec in [
            "",
            "tty",
            "tty1",
            "hvc1",
            "ttysclp1",
            "TTY0",
            " tty0",
            "tty0 ",
            "tty0,9600",
            "ttyS",
            "ttyAMA",
            "ttyS-1",
            "ttyS+1",
            "ttyS0,",
            "ttyS0,n8",
            "ttyS0,9600x",
            "ttyS0,9600n4",
            "ttyS0,9600n9",
            "ttyS0,9600nn",
            "ttyS0,9600n8r",
            "ttyS0,9600n8 ",
            "ttyS0n8",
            "ttyUSB0",
            "ttyS٣",
            "xttyS0",
            "ttyS0,9600,8",
        ] {
            let error = spec.parse::<Console>().unwrap_err();
            assert!(matches!(error, ConsoleError::Unknown { .. }), "{spec}: {error:?}");
        }
    }

    #[test]
    fn errors_name_the_invalid_part() {
        let text = |spec: &str| spec.parse::<Console>().unwrap_err().to_string();
        assert_eq!(text("console=tty0"), r#"console "console=tty0": spec should not start with "console=""#);
        assert_eq!(text("/dev/ttyS0"), r#"console "/dev/ttyS0": spec should not start with "/dev/""#);
        assert_eq!(text("ttyS256"), r#"console "ttyS256": couldn't parse port 256"#);
        assert_eq!(
            text("ttyS0,4294967296"),
            r#"console "ttyS0,4294967296": couldn't parse speed 4294967296"#
        );
        assert!(text("ttyX").contains("unsupported"));
    }

    fn hint_for(kargs: &[&str]) -> Option<String> {
        let kargs: Vec<String> = kargs.iter().map(|karg| (*karg).to_owned()).collect();
        karg_hint(&kargs)
    }

    #[test]
    fn hint_quotes_the_arguments() {
        assert_eq!(
            hint_for(&["quiet", "console=ttyS0"]).unwrap(),
            "\nNote: consider using \"--dest-console ttyS0\" instead of\n\
             \"--dest-karg-append console=ttyS0\" to configure both kernel and bootloader\n\
             consoles.\n"
        );
        let two = hint_for(&["console=tty0", "console=ttyS0,9600"]).unwrap();
        assert!(two.contains("\"--dest-console tty0 --dest-console ttyS0,9600\""), "{two}");
    }

    #[test]
    fn hint_ignores_unsupported_consoles() {
        assert_eq!(hint_for(&[]), None);
        assert_eq!(hint_for(&["quiet"]), None);
        assert_eq!(hint_for(&["console=tty0", "console=ttyUSB0"]), None);
    }

    proptest! {
        #[test]
        fn displayed_console_round_trips(
            spec in "(ttyS|ttyAMA)[0-9]{1,2}(,[0-9]{1,7}([noe][5-8]?)?)?|tty0|hvc0|ttysclp0"
        ) {
            let console: Console = spec.parse().unwrap();
            prop_assert_eq!(console.to_string().parse::<Console>().unwrap(), console);
        }

        #[test]
        fn any_text_parses_without_panic(spec in ".{0,24}|ttyS[0-9]{0,12},?[0-9]{0,12}.{0,3}") {
            if let Ok(console) = spec.parse::<Console>() {
                prop_assert_eq!(console.to_string().parse::<Console>().unwrap(), console);
            }
        }
    }
}
