import type { ProcessorKind, ProcessorUnit } from '../../../src/store/server/processor-unit.ts';

/** A unit for tests of ownership. */
export function unitOf(name: string, kind: ProcessorKind = 'processor', version = 1, partition = 0): ProcessorUnit {
  return { kind, name, version, partition };
}
