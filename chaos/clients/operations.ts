import { setTimeout as pause } from 'node:timers/promises';
import { valueAt } from '../claims.ts';
import { acknowledge, type Ledger, type LedgerEntry } from '../ledger.ts';
import { ask, type Request, type Response } from './ask.ts';
import { type Answer, type Asked, positionOf, type Token } from './told.ts';

export interface Client {
  /** One random operation. When this resolves, the client has the response. */
  next(): Promise<void>;
  /** Claims a unique value, which may be taken. */
  claim(): Promise<void>;
}

export interface OperationsOptions {
  readonly gateways: readonly string[];
  readonly ledger: Ledger;
  hear(answer: Answer): void;
}

/** The row of an acknowledged write: any client may read it with the writer's token. */
interface Written {
  readonly append: number;
  readonly streamId: string;
  readonly streamVersion: number;
  readonly token: Token;
}

const writing = (selection: string) => `mutation ($input: MoveInput!, $key: String) {
  move(input: $input, idempotencyKey: $key) { position streamVersion ${selection} }
}`;
const write = writing('');
// Faults also hit the reads of a payload. The command is written then, and the client must not be told otherwise.
const writeAndRead = writing('query { balancesAggregate { count } }');
const claimed = `mutation ($input: ClaimInput!, $key: String) {
  claim(input: $input, idempotencyKey: $key) { position }
}`;
const writtenRow = `query ($streamId: ID!, $streamPosition: Int!) {
  journal(streamId: $streamId, streamPosition: $streamPosition) { append position }
}`;
const sums = `{
  balances(first: 1000) { nodes { movements weighted } }
  balancesAggregate { count sum { movements weighted } }
}`;
const account = `query ($id: ID!) {
  balance(accountId: $id) { amount movements chain }
  again: balance(accountId: $id) { amount movements chain }
  standing(accountId: $id) { amount chain }
}`;

/** Enough to pass on tokens while they are new, and some older ones. */
const keptWrites = 100;
/** A client without a response after this time never gets one: everything has long come to rest. */
const longestWriteMs = 90_000;
const retryMs = 100;
const accounts = 300;
const hotAccounts = 5;
/** With these codes nothing was written; all other errors leave it open. */
const nothingWritten = new Set([
  ...['DATABASE_UNAVAILABLE', 'CONCURRENCY_CONFLICT', 'STREAM_LOCKED', 'HISTORY_CHANGED'],
  ...['COMMAND_REJECTED', 'UNIQUE_CHECK_UNAVAILABLE'],
]);
/** It would get the same response again. */
const final = new Set(['CONCURRENCY_CONFLICT', 'COMMAND_REJECTED']);

/** What clients do. They share the tokens of writes. */
export function createOperations({ gateways, ledger, hear }: OperationsOptions) {
  const writes: Written[] = [];

  function client(number: number, random: () => number): Client {
    const name = `client ${number}`;
    // The last position that it got. It never reads an older state.
    let seen: Token | undefined;

    async function told(asked: Asked, request: Request, demanded: Token | undefined): Promise<Response> {
      const askedAt = Date.now();
      const response = await ask(drawn(gateways, random), { ...request, after: demanded?.text });
      const toldAt = Date.now();
      hear({ client: name, asked, demanded, askedAt, toldAt, response });
      if (response.codes.includes('HISTORY_CHANGED')) seen = undefined;
      else if (response.position !== undefined && response.codes.length === 0 && demanded === seen)
        seen = { text: response.position, toldAt };
      return response;
    }

    async function writes_(): Promise<void> {
      const streamId = anAccount(random);
      const movements = Array.from({ length: 1 + Math.floor(random() * 3) }, () => ({
        type: random() < 0.1 ? 'Opened' : random() < 0.6 ? 'Credited' : 'Debited',
        amount: (random() * 100).toFixed(2),
      }));
      const entry = ledger.begin(1_000 + number, [
        { family: 'account', streamId, types: movements.map(({ type }) => type) },
      ]);
      const { append } = entry;
      const input = { accountId: streamId, append, movements };
      const query = random() < 0.3 ? writeAndRead : write;
      const data = await sent(entry, { kind: 'write', append }, query, input);
      const payload = data?.move as { readonly position: string; readonly streamVersion: number } | null | undefined; // as selected
      if (!payload) return;
      const token = { text: payload.position, toldAt: entry.acknowledgedAt };
      writes.push({ append, streamId, streamVersion: payload.streamVersion, token });
      if (writes.length > keptWrites) writes.shift();
    }

    async function claim(): Promise<void> {
      const claimId = `claim-${ledger.entries.length}`;
      const entry = ledger.begin(1_000 + number, [{ family: 'claim', streamId: claimId, types: ['Claimed'] }]);
      const { append } = entry;
      const value = valueAt(append, random);
      await sent(entry, { kind: 'claim', append, value }, claimed, { claimId, append, value });
    }

    /** Sends a command until its outcome is known. A client that gives up before shows whether the last response that it got is true. */
    async function sent(entry: LedgerEntry, asked: Asked, query: string, input: object): Promise<Response['data']> {
      const insists = random() < 0.75;
      const request = { query, variables: { input, key: `client append ${entry.append}` } };
      const end = Date.now() + longestWriteMs;
      while (Date.now() < end) {
        const sentAt = Date.now();
        const response = await told(asked, request, undefined);
        if (settled(entry, response, sentAt) || !insists) return response.data;
        await pause(retryMs);
      }
      throw new Error(`${name} got no response to append ${entry.append} for ${longestWriteMs} ms`);
    }

    function settled(entry: LedgerEntry, { data, codes }: Response, sentAt: number): boolean {
      const payload = (data?.move ?? data?.claim) as { readonly position: string } | null | undefined; // as selected
      if (payload) {
        acknowledge(entry, [positionOf(payload.position)], sentAt);
        return true;
      }
      if (!codes.every((code) => nothingWritten.has(code))) entry.outcome = 'unknown';
      else if (entry.outcome === 'under way') entry.outcome = 'refused';
      return codes.some((code) => final.has(code));
    }

    async function readsWhatWasWritten(): Promise<void> {
      const written = random() < 0.7 ? writes.at(-1) : drawn(writes, random);
      if (!written) return;
      const { append, streamId, streamVersion, token } = written;
      const request = { query: writtenRow, variables: { streamId, streamPosition: streamVersion } };
      await told({ kind: 'written row', append }, request, token);
    }

    async function readsAnAccount(): Promise<void> {
      const accountId = anAccount(random);
      const demanded = random() < 0.7 ? seen : undefined;
      await told({ kind: 'account', accountId }, { query: account, variables: { id: accountId } }, demanded);
    }

    return {
      async next() {
        const draw = random();
        if (draw < 0.35) await writes_();
        else if (draw < 0.4) await claim();
        else if (draw < 0.65) await readsWhatWasWritten();
        else if (draw < 0.95) await readsAnAccount();
        else await told({ kind: 'sums' }, { query: sums }, seen);
      },
      claim,
    };
  }

  return { client };
}

function anAccount(random: () => number): string {
  const among = random() < 0.2 ? hotAccounts : accounts;
  return `account-${Math.floor(random() * among)}`;
}

function drawn<T>(among: readonly T[], random: () => number): T {
  return among[Math.floor(random() * among.length)] as T; // callers have at least one, or accept undefined
}
