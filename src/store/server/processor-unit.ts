/** `processor` keeps a version's table current, `rebuild` builds a new table for a version, `reactor` handles events with side effects. */
export type ProcessorKind = 'processor' | 'rebuild' | 'reactor';

/**
 * A unit of work that one process owns at a time. Each unit has a checkpoint, an owner and an epoch, in a row of the table of its kind.
 */
export interface ProcessorUnit {
  readonly kind: ProcessorKind;
  readonly name: string;
  readonly version: number;
  /** Starts at 0; 0 if there is only one. */
  readonly partition: number;
}

/** The text of a unit in maps and lock keys. Equal units have equal texts. */
export function unitText({ kind, name, version, partition }: ProcessorUnit): string {
  return `${kind} ${name}@${version}/${partition}`;
}
