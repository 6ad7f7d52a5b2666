/** The response of a gateway. */
export interface Response {
  readonly data: Readonly<Record<string, unknown>> | null;
  /** `extensions.code` of each error; `NETWORK` if there was no response. */
  readonly codes: readonly string[];
  /** The message of the first error, for the report. */
  readonly message: string | undefined;
  /** `extensions.position`: the response includes everything up to here. */
  readonly position: string | undefined;
  /** How many rows `extensions.held` names. */
  readonly held: number;
}

export interface Request {
  readonly query: string;
  readonly variables?: Readonly<Record<string, unknown>>;
  /** The position that the response must include. */
  readonly after?: string | undefined;
}

/** A client gives up after this time: longer than a gateway may wait for a position, shorter than a gateway may be frozen. */
const timeoutMs = 8_000;

/** Sends an operation as JSON, as any client does. */
export async function ask(url: string, { query, variables, after }: Request): Promise<Response> {
  let body: Body;
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'refold-position': '1',
        ...(after === undefined ? {} : { 'refold-after': after }),
      },
      body: JSON.stringify({ query, variables }),
      signal: AbortSignal.timeout(timeoutMs),
    });
    body = JSON.parse(await response.text());
  } catch (error) {
    return { data: null, codes: ['NETWORK'], message: String(error), position: undefined, held: 0 };
  }
  const { data = null, errors = [], extensions } = body;
  return {
    data,
    codes: errors.map((error) => error.extensions?.code ?? 'NO CODE'),
    message: errors[0]?.message,
    position: extensions?.position,
    held: extensions?.held?.length ?? 0,
  };
}

interface Body {
  readonly data?: Readonly<Record<string, unknown>> | null;
  readonly errors?: readonly { readonly message: string; readonly extensions?: { readonly code?: string } }[];
  readonly extensions?: { readonly position?: string; readonly held?: readonly unknown[] };
}
