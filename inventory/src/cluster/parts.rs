//! Types that requests, responses and stored records of clusters share.

pub use assisted::cluster::{
    ClusterKind, ClusterNetwork, ClusterStatus, DiskEncryption, DiskEncryptionMode, HighAvailabilityMode,
    IgnitionEndpoint, LoadBalancerType, Network, NetworkType, NodeRoles, OlmOperator, OperatorBundle,
    Platform, PlatformType, Vip, VipVerification,
};
