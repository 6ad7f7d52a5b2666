/** What a unit does: it keeps a version's table current, builds a new table for a version, or handles events with side effects. */
export type ProcessorKind = 'processor' | 'rebuild' | 'reactor';

/**
 * What is claimed and owned as a whole by one process at a time. Each has a checkpoint, an owner and an epoch, in a row of the table of
 * its kind.
 */
export interface ProcessorUnit {
  readonly kind: ProcessorKind;
  readonly name: string;
  readonly version: number;
  /** From 0 on; 0 where there is one only. */
  readonly partition: number;
}

/** The text that stands for a unit in maps and lock keys; equal units have equal texts. */
export function unitText({ kind, name, version, partition }: ProcessorUnit): string {
  return `${kind} ${name}@${version}/${partition}`;
}
