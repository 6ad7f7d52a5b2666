import { listDeadLetters, retryDeadLetters } from '../../src/runtime/dead-letters/dead-letters.ts';
import { openOperatorStores } from '../../src/runtime/stores/operator-stores.ts';
import { inItsStore, operatedConfig } from '../apart.ts';
import { ask, type Response } from '../clients/ask.ts';
import { positionOf } from '../clients/told.ts';
import { credits, mendedCredits } from '../domain.ts';
import { acknowledge } from '../ledger.ts';
import type { World } from '../world.ts';

/** An answer that was to include an event, while no other fault was active. */
export interface HeldAnswer {
  readonly what: string;
  /** Whether its row lacks the event. */
  readonly lacksEvent: boolean;
  /** Whether it names a row as held. */
  readonly saysSo: boolean;
  /** A list names the read model as held because of any other row. */
  readonly isList: boolean;
  /** Whether its position is before the event's. */
  readonly isOlder: boolean;
}

const write = `mutation ($input: MoveInput!, $key: String, $row: ID!) {
  move(input: $input, idempotencyKey: $key) { position query { credits(row: $row) { credits } } }
}`;
const row = 'query ($row: ID!) { credits(row: $row) { credits } }';
const list = 'query ($row: ID!) { creditsList(where: { row: { eq: $row } }) { nodes { credits } } }';

interface Rows {
  readonly credits?: { readonly credits: number } | null;
  readonly creditsList?: { readonly nodes: readonly { readonly credits: number }[] } | null;
}

/** A row gets one event, and its second can't be folded until an operator retries it with fixed code. Meanwhile, clients read the row. */
export async function failForAWhile(world: World): Promise<string> {
  const streamId = `held-${world.ledger.entries.length}`;
  const answers: HeldAnswer[] = [];
  for (const poison of [false, true]) {
    const written = await credit(world, streamId, poison);
    if (written.position === undefined) return `not written: ${written.response.message}`;
    const { position, response } = written;
    const wanted = poison ? 2 : 1;
    const note = (what: string, given: Response, rows: Rows | null | undefined) => {
      if (given.codes.length > 0) return;
      const found = rows?.credits ?? rows?.creditsList?.nodes[0];
      answers.push({
        what: `${what} of ${streamId}`,
        lacksEvent: (found?.credits ?? 0) < wanted,
        saysSo: given.held > 0,
        isList: Boolean(rows?.creditsList),
        isOlder: positionOf(given.position ?? '') < positionOf(position),
      });
    };
    const readAll = async (when: string) => {
      for (const { url, process } of world.gateways)
        for (const query of [row, list]) {
          const given = await ask(url, { query, variables: { row: streamId }, after: position });
          note(`the ${query === row ? 'row' : 'list'} from ${process?.name} ${when}`, given, given.data);
        }
    };
    note('the payload', response, written.query);
    await readAll(poison ? 'behind its dead letter' : 'before');
    if (!poison) continue;
    await retry(world, streamId);
    await readAll('after its retry');
  }
  world.trials.heldAnswers.push(...answers);
  return `${streamId}, ${answers.length} answers, ${answers.filter(({ lacksEvent }) => lacksEvent).length} of them lacked the event`;
}

/** Adds an event to the row, by a client's command. */
async function credit({ ledger, gateways }: World, streamId: string, poison: boolean) {
  const entry = ledger.begin(-1, [{ family: 'account', streamId, types: ['Credited'] }]);
  const { append } = entry;
  const movement = { type: 'Credited', amount: '1', ...(poison ? { poison: 'account' } : {}) };
  const variables = {
    input: { accountId: streamId, append, movements: [movement] },
    key: `client append ${append}`,
    row: streamId,
  };
  const sentAt = Date.now();
  const response = await ask(gateways[0]?.url ?? '', { query: write, variables });
  const payload = response.data?.move as { position: string; query: Rows | null } | null | undefined; // as selected
  if (payload) acknowledge(entry, [positionOf(payload.position)], sentAt);
  else entry.outcome = 'unknown';
  return { response, position: payload?.position, query: payload?.query };
}

async function retry({ log, url, storeServer }: World, streamId: string): Promise<void> {
  // The session's name shows the judges what was done.
  const options = { maxConnections: 1, applicationName: 'chaos retries' };
  const session = openOperatorStores(operatedConfig(url, storeServer.url), url, options);
  try {
    const projection = inItsStore(credits);
    const common = { db: session.stores.of(projection).db, log, readSchema: 'read_models' };
    const letters = await listDeadLetters({ ...common, projection });
    const key = letters.map((letter) => JSON.stringify(letter.key)).find((text) => text.includes(streamId));
    const by = { actor: 'chaos', reason: 'the code is fixed' };
    if (key !== undefined) await retryDeadLetters({ ...common, projection: inItsStore(mendedCredits) }, by, key);
  } finally {
    await session.close();
  }
}
