//! The outcome of a validation, and the macro that defines a registry of validations.

use std::borrow::Cow;
use std::fmt;

use assisted::host::ValidationStatus;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::definition::{ValidationDefinition, ValidationId};

/// The status of an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OutcomeStatus {
    /// The validation passed.
    Success,
    /// The validation passed, and clients do not see it.
    Suppressed,
    /// The validation failed.
    Failure,
    /// Data that the validation needs is missing.
    Pending,
    /// The validation could not be computed.
    Error,
    /// The operator of the service has disabled the validation.
    Disabled,
}

impl OutcomeStatus {
    /// Returns the status that clients see, or `None` if clients do not see the validation.
    #[must_use]
    pub fn shown(self) -> Option<ValidationStatus> {
        match self {
            Self::Success => Some(ValidationStatus::Success),
            Self::Suppressed => None,
            Self::Failure => Some(ValidationStatus::Failure),
            Self::Pending => Some(ValidationStatus::Pending),
            Self::Error => Some(ValidationStatus::Error),
            Self::Disabled => Some(ValidationStatus::Disabled),
        }
    }
}

/// The parts of an outcome that clients see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutcomeDescription {
    /// The status of the outcome.
    pub status: OutcomeStatus,
    /// The message for users.
    pub message: Cow<'static, str>,
    /// The action that a user can take. `None` if no action is needed.
    pub remedy: Option<&'static str>,
}

impl OutcomeDescription {
    pub(super) fn success(message: impl Into<Cow<'static, str>>) -> Self {
        Self { status: OutcomeStatus::Success, message: message.into(), remedy: None }
    }

    /// Returns the description of a validation that does not apply.
    pub(super) fn suppressed() -> Self {
        Self { status: OutcomeStatus::Suppressed, message: Cow::Borrowed(""), remedy: None }
    }

    pub(super) fn failure(message: impl Into<Cow<'static, str>>, remedy: &'static str) -> Self {
        Self { status: OutcomeStatus::Failure, message: message.into(), remedy: Some(remedy) }
    }

    pub(super) fn pending(message: impl Into<Cow<'static, str>>, remedy: &'static str) -> Self {
        Self { status: OutcomeStatus::Pending, message: message.into(), remedy: Some(remedy) }
    }

    pub(super) fn error(message: impl Into<Cow<'static, str>>, remedy: &'static str) -> Self {
        Self { status: OutcomeStatus::Error, message: message.into(), remedy: Some(remedy) }
    }

    pub(super) fn disabled() -> Self {
        Self {
            status: OutcomeStatus::Disabled,
            message: Cow::Borrowed("Validation disabled by configuration"),
            remedy: None,
        }
    }
}

/// The outcome type of one validation: an enum whose variants carry the arguments of the message.
///
/// The names of variants and fields are stored. After a variant or field is renamed, stored outcomes are computed
/// again.
pub(super) trait TypedOutcome: Clone + fmt::Debug + PartialEq + Serialize + DeserializeOwned {
    /// The group type of the validation.
    type Group: 'static;

    /// The facts that the validation reads.
    type Input<'a>;

    /// The fixed properties of the validation.
    const DEFINITION: ValidationDefinition<Self::Group>;

    /// Computes the outcome from the facts.
    fn evaluate(input: &Self::Input<'_>) -> Self;

    /// Returns the status, the message and the remedy of the outcome.
    fn describe(&self) -> OutcomeDescription;

    /// Returns `true` if `other` is the same variant with the same items, such as names. Outcomes with measured numbers
    /// override this function, so that a change of only a measured number is not stored.
    fn has_same_items(&self, other: &Self) -> bool {
        self == other
    }

    /// Returns at least one outcome for each variant, with example arguments for the documentation.
    fn samples() -> Vec<Self>;
}

/// The input of a set of validations.
pub trait ValidationInput<Id> {
    /// Returns `true` if the operator of the service has disabled the validation.
    fn is_disabled(&self, id: Id) -> bool;

    /// Returns `true` if clients currently do not see the validation.
    fn is_hidden(&self, id: Id) -> bool;
}

/// The outcome of any host validation, or of any cluster validation.
pub trait ValidationOutcome: Clone + fmt::Debug + PartialEq {
    /// The type of the validation ids.
    type Id: ValidationId;

    /// The facts that the validations read.
    type Input<'a>: ValidationInput<Self::Id>;

    /// Computes the validation `id`.
    fn evaluate(id: Self::Id, input: &Self::Input<'_>) -> Self;

    /// Returns the outcome of a validation that the operator has disabled.
    fn disabled(id: Self::Id) -> Self;

    /// Returns the id of the validation.
    fn id(&self) -> Self::Id;

    /// Returns the status, the message and the remedy of the outcome.
    fn describe(&self) -> OutcomeDescription;

    /// Returns `true` if the status and the failing items are the same. Measured numbers are ignored.
    fn has_same_items(&self, other: &Self) -> bool;

    /// Returns the arguments of the outcome as JSON, or `None` if the validation is disabled.
    ///
    /// # Errors
    ///
    /// Returns an error if an argument cannot be serialized as JSON.
    fn to_content(&self) -> Result<Option<Value>, serde_json::Error>;

    /// Creates an outcome of the validation `id` from its JSON arguments.
    ///
    /// # Errors
    ///
    /// Returns an error if the JSON does not match any outcome of the validation.
    fn from_content(id: Self::Id, content: Value) -> Result<Self, serde_json::Error>;

    /// Returns example outcomes of a validation.
    fn samples(id: Self::Id) -> Vec<Self>;
}

/// Defines the enum of ids and the enum of outcomes. The list has one line for each validation, in computing order.
macro_rules! registry {
    (
        $(#[$id_meta:meta])* $vis:vis ids: $Id:ident,
        $(#[$outcome_meta:meta])* outcomes: $Outcome:ident,
        group: $Group:ty,
        input: $Input:ident,
        order: $order:expr,
        unimplemented: $unimplemented:expr,
        validations: { $($Variant:ident = $string:literal, $Typed:ty, $doc:literal;)* }
    ) => {
        $(#[$id_meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis enum $Id {
            $(#[doc = $doc] $Variant,)*
        }

        impl $crate::validation::definition::ValidationId for $Id {
            type Group = $Group;

            const ALL: &'static [Self] = &[$(Self::$Variant),*];

            const ORDER: $crate::validation::definition::ListOrder = $order;

            const UNIMPLEMENTED: &'static [&'static str] = $unimplemented;

            fn as_str(self) -> &'static str {
                match self {
                    $(Self::$Variant => $string,)*
                }
            }

            fn definition(self) -> &'static $crate::validation::definition::ValidationDefinition<Self::Group> {
                match self {
                    $(Self::$Variant => &<$Typed as $crate::validation::outcome::TypedOutcome>::DEFINITION,)*
                }
            }
        }

        impl std::fmt::Display for $Id {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad($crate::validation::definition::ValidationId::as_str(*self))
            }
        }

        $(#[$outcome_meta])*
        #[derive(Clone, Debug, PartialEq)]
        $vis enum $Outcome {
            /// The operator of the service has disabled the validation.
            Disabled($Id),
            $(#[doc = $doc] $Variant($Typed),)*
        }

        $(
            impl From<$Typed> for $Outcome {
                fn from(outcome: $Typed) -> Self {
                    Self::$Variant(outcome)
                }
            }
        )*

        impl $crate::validation::outcome::ValidationOutcome for $Outcome {
            type Id = $Id;
            type Input<'a> = $Input<'a>;

            #[allow(unused_variables, reason = "a registry may be empty")]
            fn evaluate(id: $Id, input: &$Input<'_>) -> Self {
                match id {
                    $($Id::$Variant => <$Typed as $crate::validation::outcome::TypedOutcome>::evaluate(input).into(),)*
                }
            }

            fn disabled(id: $Id) -> Self {
                Self::Disabled(id)
            }

            fn id(&self) -> $Id {
                match self {
                    Self::Disabled(id) => *id,
                    $(Self::$Variant(_) => $Id::$Variant,)*
                }
            }

            fn describe(&self) -> $crate::validation::outcome::OutcomeDescription {
                match self {
                    Self::Disabled(_) => $crate::validation::outcome::OutcomeDescription::disabled(),
                    $(Self::$Variant(outcome) => $crate::validation::outcome::TypedOutcome::describe(outcome),)*
                }
            }

            fn has_same_items(&self, other: &Self) -> bool {
                match self {
                    Self::Disabled(id) => matches!(other, Self::Disabled(other) if id == other),
                    $(Self::$Variant(outcome) => matches!(
                        other,
                        Self::$Variant(other)
                            if $crate::validation::outcome::TypedOutcome::has_same_items(outcome, other)
                    ),)*
                }
            }

            fn to_content(&self) -> Result<Option<serde_json::Value>, serde_json::Error> {
                match self {
                    Self::Disabled(_) => Ok(None),
                    $(Self::$Variant(outcome) => serde_json::to_value(outcome).map(Some),)*
                }
            }

            #[allow(unused_variables, reason = "a registry may be empty")]
            fn from_content(id: $Id, content: serde_json::Value) -> Result<Self, serde_json::Error> {
                match id {
                    $($Id::$Variant => serde_json::from_value::<$Typed>(content).map(Self::$Variant),)*
                }
            }

            fn samples(id: $Id) -> Vec<Self> {
                match id {
                    $($Id::$Variant => {
                        let samples = <$Typed as $crate::validation::outcome::TypedOutcome>::samples();
                        samples.into_iter().map(Self::$Variant).collect()
                    })*
                }
            }
        }
    };
}
pub(super) use registry;
