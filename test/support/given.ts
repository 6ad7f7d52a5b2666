import type { CommandStream } from '../../src/commands/command-options.ts';
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
      const streams = command.streamsOf(parsed);
      const [{ state, streamId }] = streams as [CommandStream]; // the commands of these tests are about one stream
      const recorded = await createRecorder()({ family: state.family, streamId, events: history });
      const folded = recorded.reduce<unknown>((before, event) => state.apply(before, event), state.initial());
      const context = { streamVersions: [recorded.length], metadata: {}, now, loaded: undefined };
      const [decided = []] = command.decide(parsed, [folded], streams, context);
      return Promise.all(decided.map((event) => validateEvent(state.family, event)));
    },
  };
}
