import fc from 'fast-check';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { CommandRejected, defineCommand, type RecordedEvent, RefoldError } from '../../../src/index.ts';
import { executeStep } from '../../../src/runtime/commands/execute-step.ts';
import { createStepNames } from '../../../src/runtime/commands/step-names.ts';
import { createEventLog } from '../../../src/store/event-log.ts';
import { databaseOfFile } from '../../support/database-of-file.ts';
import { effort } from '../../support/effort.ts';
import { account } from '../../support/sample-domain.ts';

const { db } = await databaseOfFile();

/** What each process decides. */
const decisions = new Map<string, string>();

/** Decides as its process says, as if the state had changed between two decisions. */
const fickle = defineCommand({
  name: 'fickle',
  input: z.object({ accountId: z.string() }),
  events: account,
  stream: (input) => input.accountId,
  decide(_input, _state, { metadata: { actor: by = '' } }) {
    const decision = decisions.get(by);
    if (decision === 'refuse') throw new CommandRejected(`refused by ${by}`, { by });
    return decision === 'write' ? { type: 'Opened', payload: { owner: by } } : [];
  },
});

test('processes that run one step at the same time and decide differently all get the same outcome, which stays', async () => {
  let steps = 0;
  const anyDecisions = fc.array(fc.constantFrom('write', 'refuse', 'nothing'), { minLength: 2, maxLength: 6 });
  await fc.assert(
    fc.asyncProperty(anyDecisions, async (each) => {
      const accountId = `a${++steps}`;
      const { events } = await createEventLog(db, [account]).append({
        family: account,
        streamId: `requests-${steps}`,
        events: [{ type: 'Opened', payload: { owner: 'Ada' } }],
      });
      const event = events[0] as RecordedEvent; // one was appended
      const run = async (decision: string, by: string): Promise<string> => {
        // Each has its own log, as a separate process has.
        const log = createEventLog(db, [account]);
        for (;;) {
          try {
            const step = createStepNames({ name: 'watch', commands: undefined }, event).ofCommand(fickle);
            decisions.set(by, decision);
            const { events } = await executeStep({ db, log, step, metadata: { actor: by } }, fickle, { accountId });
            return events.length === 0 ? 'nothing' : `written by ${(events[0]?.payload as { owner: string }).owner}`; // an Opened event
          } catch (error) {
            if (error instanceof CommandRejected) return `${error.message} (${String(error.fields.by)})`;
            // Another process has decided meanwhile. A reactor retries in this case.
            if (!(error instanceof RefoldError) || error.code !== 'PROCESSOR_FENCED') throw error;
          }
        }
      };
      const outcomes = await Promise.all(each.map((decision, index) => run(decision, `process ${index}`)));
      expect(new Set(outcomes).size).toBe(1);
      for (const decision of ['write', 'refuse', 'nothing']) expect(await run(decision, 'later')).toBe(outcomes[0]);
      const written = await createEventLog(db, [account]).streamVersion(account, accountId);
      expect(written).toBe(outcomes[0]?.startsWith('written') ? 1 : 0);
    }),
    { numRuns: effort(60, 15) },
  );
});
