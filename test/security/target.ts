import { pino } from 'pino';
import { expect } from 'vitest';
import { createRefold, defineConfig, type Refold } from '../../src/index.ts';
import { createTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { letter, letterSent, letterV1, senderV1, sendLetter } from './letters.ts';
import { auth, token } from './notes.ts';

/** A running application of two tenants, as in production, and what attackers of one tenant know. */
export interface Target {
  readonly refold: Refold;
  readonly url: string;
  readonly port: number;
  /** Of a viewer of the tenant `north`. */
  readonly bearer: string;
  /** Of a viewer of the other tenant, whose rows nobody else may see. */
  readonly foreignBearer: string;
  readonly position: bigint;
  /** Fails if an attempt caused an error that the program did not expect. */
  expectNoAlarm(): void;
  stop(): Promise<void>;
}

/** Part of every text of the other tenant's rows. */
export const foreignMark = 'Zwiebelfisch';
export const ownLetters = 3;

type Gateway = NonNullable<Parameters<typeof defineConfig>[0]['gateway']>;

export async function startTarget(gateway: Gateway = {}): Promise<Target> {
  const database = await createTestDatabase();
  const alarms: unknown[] = [];
  const logger = pino({ level: 'error' }, { write: (line: string) => void alarms.push(toldBy(JSON.parse(line))) });
  const config = defineConfig({
    development: false,
    projections: [letterV1, senderV1],
    commands: [sendLetter],
    auth,
    database: { url: database.url },
    gateway: { port: 0, positionTimeout: 300_000, ...gateway },
  });
  const refold = await createRefold(config, { logger });
  let position = 0n;
  for (const [tenantId, mark] of [
    ['north', 'own'],
    ['south', foreignMark],
  ] as const) {
    for (let index = 1; index <= ownLetters; index++) {
      const letterId = `${tenantId}-${index}`;
      const payload = letterSent({
        letterId,
        tenantId,
        subject: `${mark} ${index}`,
        secret: `${foreignMark} secret ${index}`,
        extra: { mark },
      });
      const event = { type: 'LetterSent', payload } as const;
      ({ position } = await refold.log.append({ family: letter, streamId: letterId, events: [event] }));
    }
  }
  await until(async () => (await refold.status()).every((version) => version.position >= position));
  const url = refold.url ?? '';
  return {
    refold,
    url,
    port: Number(new URL(url).port),
    bearer: await token({ tenant: 'north' }),
    foreignBearer: await token({ sub: 'eve', tenant: 'south' }),
    position,
    expectNoAlarm: () => expect(alarms).toEqual([]),
    async stop() {
      await refold.stop();
      await database.drop();
    },
  };
}

function toldBy({ msg, err }: { msg?: string; err?: { message?: string; stack?: string } }): string {
  return `${msg}: ${err?.stack ?? err?.message}`;
}
