import { type GlobalPosition, globalPosition } from '../../events/global-position.ts';

/**
 * Notification channel. After each batch it receives `name@version:checkpoint` or, with several partitions,
 * `name@version/partition/partitions:checkpoint`.
 */
export const checkpointChannel = 'refold_checkpoints';

/** The checkpoint of one partition of a version, and the number of partitions. */
export interface NotifiedCheckpoint {
  /** `name@version` */
  readonly id: string;
  readonly partition: number;
  readonly partitions: number;
  readonly checkpoint: GlobalPosition;
}

/** Parses a notification; undefined if it is none of this channel. */
export function parseCheckpoint(payload: string): NotifiedCheckpoint | undefined {
  const match = /^([^/]+@\d+)(?:\/(\d{1,2})\/(\d{1,2}))?:(\d{1,15})$/.exec(payload);
  if (!match) return undefined;
  const [, id = '', partition = '0', partitions = '1', checkpoint = ''] = match;
  return { id, partition: Number(partition), partitions: Number(partitions), checkpoint: globalPosition(checkpoint) };
}
