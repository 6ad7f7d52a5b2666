import type { ExecutionResult } from 'graphql';
import { parseToken } from '../src/events/position-token.ts';
import { type Balancer, type Response, Unanswered } from './balancer.ts';
import type { ClientRecord } from './client-record.ts';

export interface Ask {
  /** The kind under which its duration is recorded. */
  readonly kind: string;
  readonly query: string;
  readonly variables?: Readonly<{ [name: string]: unknown }>;
  /** `tenant role`; without it, a viewer who sees everything. */
  readonly viewer?: string;
  /** A position that the response must include. */
  readonly after?: bigint;
  /** Codes that are correct responses here. */
  readonly allowed?: readonly string[];
  /** Evaluated by the executor, even if the operation could be compiled. */
  readonly executor?: boolean;
}

export type Data = Readonly<{ [name: string]: unknown }>;

export type Outcome =
  | { readonly kind: 'answered'; readonly data: Data; readonly response: Response }
  /** An allowed error. */
  | { readonly kind: 'refused'; readonly code: string }
  /** The failure is recorded. `unknown`: the operation may have been executed. */
  | { readonly kind: 'failed'; readonly unknown: boolean };

/** One client. It never reads an older position than it has seen. */
export interface Session {
  readonly name: string;
  /** The newest position that it has seen. */
  readonly seen: bigint;
  ask(ask: Ask): Promise<Outcome>;
}

interface Body extends ExecutionResult<{ [name: string]: unknown }> {
  readonly extensions?: { readonly position?: string };
}

export function createSession(name: string, balancer: Balancer, record: ClientRecord): Session {
  let seen = 0n;

  async function ask({ kind, query, variables = {}, viewer, after, allowed = [], executor }: Ask): Promise<Outcome> {
    const start = performance.now();
    const headers = {
      authorization: `${name} ${viewer ?? ''}`.trim(),
      'refold-position': '1',
      // Gateways differ in how far they are. A client that must not go back sends its last position.
      'refold-after': String(after !== undefined && after > seen ? after : seen),
    };
    let response: Response;
    try {
      const path = executor ? '/graphql?by=executor' : '/graphql';
      response = await balancer.post(path, headers, JSON.stringify({ query, variables }));
    } catch (error) {
      if (!(error instanceof Unanswered)) throw error;
      record.failed(kind, error.code, `${error.message}: ${query} ${JSON.stringify(variables)}`);
      return { kind: 'failed', unknown: true };
    }
    record.answered(kind, performance.now() - start);
    const told = () =>
      `${response.backend.process.name} returned ${response.text.slice(0, 700)} for ${query} ${JSON.stringify(variables)}`;
    const body = parsed(response.text);
    const code = body?.errors?.map(({ extensions }) => String(extensions?.code))[0];
    if (body?.errors && code !== undefined) {
      if (allowed.includes(code)) return { kind: 'refused', code };
      record.failed(kind, code, told());
      return { kind: 'failed', unknown: code === 'OUTCOME_UNKNOWN' || code === 'INTERNAL_SERVER_ERROR' };
    }
    if (response.status !== 200 || !body?.data) {
      record.failed(kind, `status ${response.status}`, told());
      return { kind: 'failed', unknown: response.status >= 500 };
    }
    const position = parseToken(body.extensions?.position ?? '0').position;
    if (position !== 0n && position < seen)
      record.isWrong(`${name} had seen position ${seen}, but got a response of position ${position}: ${told()}`);
    if (position > seen) seen = position;
    return { kind: 'answered', data: body.data, response };
  }

  return {
    name,
    get seen() {
      return seen;
    },
    ask,
  };
}

function parsed(text: string): Body | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
