import type { RecordedEvent } from '../../events/event.ts';
import type { EventFamily } from '../../events/event-family.ts';
import { beginning, type GlobalPosition } from '../../events/global-position.ts';
import { invalidPayload, unreadable } from '../../events/read-payload.ts';
import type { EventLog } from '../../store/event-log.ts';

/** An event whose payload this program can't read, or reads as something that the schema of its type refuses. */
export interface PayloadProblem {
  readonly family: string;
  readonly type: string;
  readonly payloadVersion: number;
  readonly position: GlobalPosition;
  readonly streamId: string;
  readonly problem: string;
}

export interface PayloadVerification {
  /** All events up to here were read. */
  readonly position: GlobalPosition;
  readonly events: number;
  readonly problems: number;
  /** The first problems, at most 1,000. */
  readonly samples: readonly PayloadProblem[];
}

const pageSize = 10_000;
const samplesKept = 1000;

/** Reads every event of the declared types as the application would, and checks its payload against the schema of its type. */
export async function verifyPayloads(
  log: Pick<EventLog, 'families' | 'horizon' | 'readAll'>,
  onProgress: (position: GlobalPosition, of: GlobalPosition) => void | Promise<void> = () => {},
): Promise<PayloadVerification> {
  const upTo = await log.horizon();
  const samples: PayloadProblem[] = [];
  let events = 0;
  let problems = 0;
  for (let after = beginning; after < upTo; ) {
    const page = await log.readAll({ after, upTo, limit: pageSize });
    for (const event of page.events) {
      events++;
      const problem = await problemOf(log.families.get(event.family), event);
      if (problem === null) continue;
      problems++;
      const { family, type, payloadVersion, position, streamId } = event;
      if (samples.length < samplesKept) samples.push({ family, type, payloadVersion, position, streamId, problem });
    }
    after = page.upTo;
    await onProgress(after, upTo);
  }
  return { position: upTo, events, problems, samples };
}

async function problemOf(family: EventFamily | undefined, event: RecordedEvent): Promise<string | null> {
  if (!family) return null; // only events of declared families are read
  return unreadable(event)?.message ?? invalidPayload(family, event);
}
