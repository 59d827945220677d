//! The CPU time of an assessment.
