import type { Credentials } from '../access.ts';
import { closest } from '../events/closest.ts';
import { invalidConfig, refuseUnknown } from './option-checks.ts';
import type { OptionRule } from './option-rules.ts';

/** What a caller of the admin API may do. Each action needs one of these rights. */
export const adminRights = [
  'read',
  'data',
  'verify',
  'activate',
  'rollback',
  'rebuild',
  'retire',
  'pause',
  'snapshot',
  'canary',
  'shadow',
  'retryDeadLetters',
  'discardDeadLetters',
  'reactors',
] as const;

export type AdminRight = (typeof adminRights)[number];

/** The rights of a caller: `'read'` is read only, `'all'` is everything, or a list. Each includes `read`. */
export type AdminRights = 'read' | 'all' | readonly AdminRight[];

/** A token of the admin API. */
export interface AdminToken {
  /** Who uses it. The audit log records this name with each action. */
  readonly name: string;
  /** The secret: at least 16 characters. */
  readonly token: string;
  readonly rights: AdminRights;
}

/** A caller that `authorize` has recognized. */
export interface AdminCaller {
  /** The audit log records this name with each action. */
  readonly name: string;
  readonly rights: AdminRights;
}

export interface AdminOptions {
  /** The tokens that may call the admin API, each with the `name` and the `rights` of who uses it. @default none */
  readonly tokens?: readonly AdminToken[];
  /**
   * Recognizes callers by other credentials, for example by a JWT. Called if no token matches. Returns null to refuse the caller.
   * @default none
   */
  readonly authorize?: (credentials: Pick<Credentials, 'header'>) => AdminCaller | null | Promise<AdminCaller | null>;
}

export interface CheckedAdmin {
  readonly tokens: readonly (Omit<AdminToken, 'rights'> & { readonly rights: ReadonlySet<AdminRight> })[];
  readonly authorize: AdminOptions['authorize'];
}

export const adminRules = {
  tokens: { kind: 'json' },
} as const satisfies Record<Exclude<keyof AdminOptions, 'authorize'>, OptionRule>;

// Guessing a shorter one is possible; `openssl rand -base64 24` has 32.
const shortestToken = 16;

/** @throws RefoldError `INVALID_CONFIG`; the message never contains a token */
export function checkAdmin(admin: AdminOptions): CheckedAdmin {
  if (typeof admin !== 'object' || admin === null)
    throw invalidConfig(
      "gateway.admin is an object, such as { tokens: [{ name: 'ada', token: '…', rights: 'read' }] }.",
    );
  refuseUnknown('gateway.admin', admin, [...Object.keys(adminRules), 'authorize']);
  const { tokens = [], authorize } = admin;
  if (!Array.isArray(tokens))
    throw invalidConfig("gateway.admin.tokens is a list, such as [{ name: 'ada', token: '…', rights: 'read' }].");
  if (authorize !== undefined && typeof authorize !== 'function')
    throw invalidConfig('gateway.admin.authorize is a function from the credentials of a request to a caller.');
  if (tokens.length === 0 && authorize === undefined)
    throw invalidConfig(
      'gateway.admin has neither tokens nor authorize, so nobody could use it. Set one, or leave admin out.',
    );
  const checked = tokens.map(checkToken);
  if (new Set(checked.map(({ token }) => token)).size < checked.length)
    throw invalidConfig('gateway.admin.tokens has the same token twice.');
  return Object.freeze({ tokens: Object.freeze(checked), authorize });
}

function checkToken(given: unknown, index: number): CheckedAdmin['tokens'][number] {
  const subject = `gateway.admin.tokens[${index}]`;
  if (typeof given !== 'object' || given === null) throw invalidConfig(`${subject} is not an object.`);
  refuseUnknown(subject, given, ['name', 'token', 'rights']);
  const { name, token, rights } = given as Partial<Record<keyof AdminToken, unknown>>; // any object can be read by property names
  if (typeof name !== 'string' || name.trim() === '' || name.length > 200)
    throw invalidConfig(`${subject}.name is a text: the audit log records it.`);
  if (typeof token !== 'string' || token.length < shortestToken || !/^[\x21-\x7e]+$/.test(token))
    throw invalidConfig(`${subject}.token has at least ${shortestToken} characters of ASCII without spaces.`);
  return Object.freeze({ name, token, rights: checkRights(`${subject}.rights`, rights) });
}

/** @throws RefoldError `INVALID_CONFIG` */
export function checkRights(subject: string, rights: unknown): ReadonlySet<AdminRight> {
  if (rights === 'all') return new Set(adminRights);
  if (rights === 'read') return new Set(['read']);
  if (!Array.isArray(rights))
    throw invalidConfig(`${subject} is 'read', 'all' or a list of rights: ${adminRights.join(', ')}.`);
  for (const right of rights) {
    if (!adminRights.includes(right))
      throw invalidConfig(
        `${subject} holds '${String(right)}', which is no right.${closest(String(right), adminRights)}`,
      );
  }
  return new Set<AdminRight>(['read', ...rights]);
}
