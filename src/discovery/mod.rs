//! What an infra-env's images are made of: from inputs to an Ignition config, network files and kernel arguments.
