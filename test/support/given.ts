import type { Command } from '../../src/commands/define-command.ts';
import type { NewEvent } from '../../src/events/event.ts';
import { validateEvent } from '../../src/events/event-family.ts';
import { createRecorder } from './in-memory.ts';

/** The time of every decision in a test. */
export const now = '2026-01-31T12:00:00.000Z';

/** The events that a command decides after the given events of a stream, checked against their schemas as an append does. */
export function given(...history: readonly NewEvent[]) {
  return {
    async when(command: Command, input: unknown): Promise<readonly NewEvent[]> {
      const parsed = await command.parse(input);
      const streamId = command.streamOf(parsed);
      const recorded = await createRecorder()({ family: command.family, streamId, events: history });
      const state = recorded.reduce<unknown>(
        (before, event) => command.state.apply(before, event),
        command.state.initial(),
      );
      const decided = command.decide(parsed, state, { streamVersion: recorded.length, metadata: {}, now });
      return Promise.all(decided.map((event) => validateEvent(command.family, event)));
    },
  };
}
