//! Sizes of summaries in memory, for caches with a limit in bytes.

use std::mem::size_of;
use std::net::IpAddr;

use assisted::HostId;
use assisted::cluster::VipVerification;
use assisted::step::VipType;
use ignition::Cidr;

/// A value that can report its size on the heap.
pub(super) trait HeapLen {
    /// Returns the number of heap bytes that the value owns, without the overhead of the allocator.
    fn heap_len(&self) -> usize;
}

/// Implements [`HeapLen`] for types that own no heap memory.
macro_rules! no_heap {
    ($($name:ty),+ $(,)?) => {$(
        impl crate::summary::memory::HeapLen for $name {
            fn heap_len(&self) -> usize {
                0
            }
        }
    )+};
}
pub(super) use no_heap;

no_heap!(bool, u8, i64, f64, IpAddr, Cidr, HostId, VipType, VipVerification);

impl HeapLen for Box<str> {
    fn heap_len(&self) -> usize {
        self.len()
    }
}

impl<T: HeapLen> HeapLen for Box<T> {
    fn heap_len(&self) -> usize {
        size_of::<T>().saturating_add((**self).heap_len())
    }
}

impl<T: HeapLen> HeapLen for Option<T> {
    fn heap_len(&self) -> usize {
        self.as_ref().map_or(0, HeapLen::heap_len)
    }
}

impl<T: HeapLen> HeapLen for Vec<T> {
    fn heap_len(&self) -> usize {
        let items = self.iter().map(HeapLen::heap_len).fold(0, usize::saturating_add);
        self.capacity().saturating_mul(size_of::<T>()).saturating_add(items)
    }
}

/// Implements [`HeapLen`] for a struct. The macro must list all fields.
macro_rules! heap_len {
    ($name:ident { $($field:ident),* $(,)? }) => {
        impl crate::summary::memory::HeapLen for $name {
            fn heap_len(&self) -> usize {
                let Self { $($field),* } = self;
                let fields: &[&dyn crate::summary::memory::HeapLen] = &[$($field),*];
                fields.iter().map(|field| field.heap_len()).fold(0, usize::saturating_add)
            }
        }
    };
}
pub(super) use heap_len;
