//! Views: what kernels read and write. A slice of elements with a shape and strides of four dimensions.

mod geometry;
mod raw;

pub(crate) use geometry::{Geometry, row_major};
pub(crate) use raw::{RawView, RawViewMut};

use crate::error::{Error, Result};
use half::bf16;

/// Type of an element in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dtype {
    /// IEEE single precision.
    F32,
    /// The upper half of an `F32`.
    Bf16,
    /// Unsigned 32-bit integer.
    U32,
    /// Signed 32-bit integer.
    I32,
}

impl Dtype {
    /// Size of an element in bytes.
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            Self::Bf16 => 2,
            Self::F32 | Self::U32 | Self::I32 => 4,
        }
    }
}

impl std::fmt::Display for Dtype {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::F32 => "float32",
            Self::Bf16 => "bfloat16",
            Self::U32 => "uint32",
            Self::I32 => "int32",
        })
    }
}

macro_rules! elements {
    ($($variant:ident $type:ty),*) => {
        /// Elements to read.
        #[derive(Debug, Clone, Copy)]
        pub enum Elements<'a> {
            $(#[doc = concat!("Elements of type `", stringify!($type), "`.")] $variant(&'a [$type])),*
        }

        /// Elements to write.
        #[derive(Debug)]
        pub enum ElementsMut<'a> {
            $(#[doc = concat!("Elements of type `", stringify!($type), "`.")] $variant(&'a mut [$type])),*
        }

        impl<'a> Elements<'a> {
            /// Type of the elements.
            #[must_use]
            pub fn dtype(&self) -> Dtype {
                match self { $(Self::$variant(_) => Dtype::$variant),* }
            }
            /// Number of elements.
            #[must_use]
            pub fn len(&self) -> usize {
                match self { $(Self::$variant(s) => s.len()),* }
            }
            /// Are there none?
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }
            fn skip(self, count: usize) -> Self {
                match self { $(Self::$variant(s) => Self::$variant(s.get(count..).unwrap_or(&[]))),* }
            }
            fn ptr(&self) -> *const u8 {
                match self { $(Self::$variant(s) => s.as_ptr().cast()),* }
            }
        }

        impl<'a> ElementsMut<'a> {
            /// Type of the elements.
            #[must_use]
            pub fn dtype(&self) -> Dtype {
                match self { $(Self::$variant(_) => Dtype::$variant),* }
            }
            /// Number of elements.
            #[must_use]
            pub fn len(&self) -> usize {
                match self { $(Self::$variant(s) => s.len()),* }
            }
            /// Are there none?
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }
            fn skip(self, count: usize) -> Self {
                match self { $(Self::$variant(s) => Self::$variant(s.get_mut(count..).unwrap_or_default())),* }
            }
            fn ptr(&mut self) -> *mut u8 {
                match self { $(Self::$variant(s) => s.as_mut_ptr().cast()),* }
            }
            fn reborrow(&mut self) -> ElementsMut<'_> {
                match self { $(Self::$variant(s) => ElementsMut::$variant(s)),* }
            }
            fn as_elements(&self) -> Elements<'_> {
                match self { $(Self::$variant(s) => Elements::$variant(s)),* }
            }
        }

        $(
            impl<'a> From<&'a [$type]> for Elements<'a> {
                fn from(slice: &'a [$type]) -> Self { Self::$variant(slice) }
            }
            impl<'a> From<&'a Vec<$type>> for Elements<'a> {
                fn from(vec: &'a Vec<$type>) -> Self { Self::$variant(vec) }
            }
            impl<'a> From<&'a mut [$type]> for ElementsMut<'a> {
                fn from(slice: &'a mut [$type]) -> Self { Self::$variant(slice) }
            }
            impl<'a> From<&'a mut Vec<$type>> for ElementsMut<'a> {
                fn from(vec: &'a mut Vec<$type>) -> Self { Self::$variant(vec) }
            }
        )*
    };
}
elements!(F32 f32, Bf16 bf16, U32 u32, I32 i32);

/// A view to read: elements, shape and strides (in elements). Leading dimensions are 1 where there are fewer than four.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    elements: Elements<'a>,
    geometry: Geometry,
}

/// A view to write. No two of its elements share a place.
#[derive(Debug)]
pub struct ViewMut<'a> {
    elements: ElementsMut<'a>,
    geometry: Geometry,
}

impl<'a> View<'a> {
    /// A view of any layout; a stride may be 0 to repeat elements.
    ///
    /// # Errors
    /// If an element lies outside the buffer.
    pub fn new(elements: impl Into<Elements<'a>>, shape: [usize; 4], strides: [usize; 4]) -> Result<Self> {
        let elements = elements.into();
        let geometry = Geometry { shape, strides }.check(elements.len())?;
        Ok(Self { elements, geometry })
    }

    /// A row-major view of the first elements of a buffer.
    ///
    /// # Errors
    /// If the buffer is too short.
    pub fn contiguous(elements: impl Into<Elements<'a>>, shape: [usize; 4]) -> Result<Self> {
        Self::new(elements, shape, row_major(shape))
    }

    /// Repeats dimensions of size 1 to reach `shape`.
    ///
    /// # Errors
    /// If a dimension is neither 1 nor that of `shape`.
    pub fn broadcast(self, shape: [usize; 4]) -> Result<Self> {
        let mut geometry = self.geometry;
        for dim in 0..4 {
            if geometry.shape[dim] == shape[dim] {
                continue;
            }
            if geometry.shape[dim] != 1 {
                return Err(Error::Shape {
                    op: "broadcast",
                    what: "view",
                    got: self.geometry.shape.into(),
                    wanted: shape.into(),
                });
            }
            geometry.shape[dim] = shape[dim];
            geometry.strides[dim] = 0;
        }
        Ok(Self { geometry, ..self })
    }

    /// The elements from the view's first one on.
    pub(crate) fn elements(&self) -> Elements<'a> {
        self.elements
    }

    pub(crate) fn raw(&self) -> RawView {
        RawView { ptr: self.elements.ptr(), dtype: self.elements.dtype(), geometry: self.geometry }
    }
}

impl<'a> ViewMut<'a> {
    /// A view of any layout in which no two elements share a place.
    ///
    /// # Errors
    /// If an element lies outside the buffer or two share a place.
    pub fn new(elements: impl Into<ElementsMut<'a>>, shape: [usize; 4], strides: [usize; 4]) -> Result<Self> {
        let elements = elements.into();
        let geometry = Geometry { shape, strides }.check(elements.len())?.check_distinct()?;
        Ok(Self { elements, geometry })
    }

    /// A row-major view of the first elements of a buffer.
    ///
    /// # Errors
    /// If the buffer is too short.
    pub fn contiguous(elements: impl Into<ElementsMut<'a>>, shape: [usize; 4]) -> Result<Self> {
        Self::new(elements, shape, row_major(shape))
    }

    /// The same view for a shorter time.
    pub fn reborrow(&mut self) -> ViewMut<'_> {
        ViewMut { elements: self.elements.reborrow(), geometry: self.geometry }
    }

    /// The same view, to read.
    #[must_use]
    pub fn as_view(&self) -> View<'_> {
        View { elements: self.elements.as_elements(), geometry: self.geometry }
    }

    /// The elements from the view's first one on.
    pub(crate) fn elements_mut(&mut self) -> ElementsMut<'_> {
        self.elements.reborrow()
    }

    pub(crate) fn raw(&mut self) -> RawViewMut {
        let dtype = self.elements.dtype();
        RawViewMut { ptr: self.elements.ptr(), dtype, geometry: self.geometry }
    }
}

macro_rules! geometry_methods {
    ($($view:ident),*) => { $(
        impl<'a> $view<'a> {
            /// Type of the elements.
            #[must_use]
            pub fn dtype(&self) -> Dtype {
                self.elements.dtype()
            }

            /// The shape.
            #[must_use]
            pub fn shape(&self) -> [usize; 4] {
                self.geometry.shape
            }

            /// The strides in elements.
            #[must_use]
            pub fn strides(&self) -> [usize; 4] {
                self.geometry.strides
            }

            /// Number of logical elements.
            #[must_use]
            pub fn len(&self) -> usize {
                self.geometry.len()
            }

            /// Is a dimension 0?
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// The part `start .. start + len` of dimension `dim`.
            ///
            /// # Errors
            /// If the part is not inside the dimension.
            pub fn slice(self, dim: usize, start: usize, len: usize) -> Result<Self> {
                let (geometry, offset) = self.geometry.slice(dim, start, len)?;
                Ok(Self { elements: self.elements.skip(offset), geometry })
            }

            /// The dimensions in another order: dimension `d` of the result is dimension `order[d]`.
            ///
            /// # Errors
            /// If `order` is not a permutation of 0..4.
            pub fn permute(self, order: [usize; 4]) -> Result<Self> {
                Ok(Self { geometry: self.geometry.permute(order)?, elements: self.elements })
            }

            /// The same elements in the same order under another shape, without a copy.
            ///
            /// # Errors
            /// If the counts differ, or if the layout is such that the result would not be a view.
            pub fn reshape(self, shape: [usize; 4]) -> Result<Self> {
                Ok(Self { geometry: self.geometry.reshape(shape)?, elements: self.elements })
            }
        }
    )* };
}
geometry_methods!(View, ViewMut);

#[cfg(test)]
mod tests;
