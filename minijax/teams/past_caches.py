"""Copies that go past the caches, in the language of LLVM.

Reference: non-temporal stores, in the LLVM Language Reference, and ``MOVNTDQ``.
"""

# Made from chapters/36_replicas_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax.machine.steps_text import MEMCPY

PAST_CACHES = f"""
declare void {MEMCPY}(i8*, i8*, i64, i1)

define i64 @copy_past_caches(i64 %to, i64 %from, i64 %size) nounwind {{
entry:
  %both = or i64 %to, %size
  %rest = and i64 %both, 63
  %lines = icmp eq i64 %rest, 0
  br i1 %lines, label %test, label %other
test:
  %done = phi i64 [ 0, %entry ], [ %more, %line ]
  %left = icmp slt i64 %done, %size
  br i1 %left, label %line, label %last
line:
  %x = add i64 %from, %done
  %y = add i64 %to, %done
  %source = inttoptr i64 %x to <8 x i64>*
  %target = inttoptr i64 %y to <8 x i64>*
  %found = load <8 x i64>, <8 x i64>* %source, align 1
  store <8 x i64> %found, <8 x i64>* %target, align 64, !nontemporal !{{i32 1}}
  %more = add i64 %done, 64
  br label %test
last:
  fence seq_cst
  br label %end
other:
  %read = inttoptr i64 %from to i8*
  %written = inttoptr i64 %to to i8*
  call void {MEMCPY}(i8* %written, i8* %read, i64 %size, i1 false)
  br label %end
end:
  ret i64 0
}}
"""
