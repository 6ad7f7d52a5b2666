import { isIPv6 } from 'node:net';
import type { Viewer } from '../../access.ts';
import { headerOf, type TransportContext } from './transport-context.ts';

/** Returns the client that something counts for; undefined if it cannot be distinguished from others. */
export type ClientOf = (viewer: Viewer | 'system', transport: TransportContext) => string | undefined;

/**
 * Returns who is limited together: a viewer, or all unauthenticated callers from one address. Undefined if that is unknown: the connection
 * comes from a proxy that `gateway.proxies` does not count, so all clients behind it would share one address.
 */
export function rateLimitClient(
  viewer: Viewer | 'system',
  transport: TransportContext,
  proxies: number | undefined,
): string | undefined {
  if (viewer === 'system') return undefined;
  if (viewer.id !== null) return `viewer ${JSON.stringify([viewer.id, viewer.tenant])}`;
  const isHidden = proxies === undefined && hidingHeaders.some((name) => headerOf(transport, name) !== undefined);
  const address = isHidden ? undefined : addressOf(transport, proxies ?? 0);
  return address && `address ${networkOf(address)}`;
}

const hidingHeaders = ['x-forwarded-for', 'forwarded', 'via', 'x-real-ip'];

/**
 * The address of the client as the outermost trusted proxy saw it. Entries that clients write into the header themselves come before it.
 */
function addressOf(transport: TransportContext, proxies: number): string | undefined {
  const direct = (transport.req ?? transport.socketRequest)?.socket?.remoteAddress;
  if (proxies === 0) return direct;
  const seen = headerOf(transport, 'x-forwarded-for')?.split(',').map(withoutPort) ?? [];
  return seen.at(-proxies) ?? direct;
}

/** Removes the port that some proxies add; it differs for each connection. */
function withoutPort(entry: string): string {
  const address = entry.trim();
  return /^\[(.+)\](?::\d+)?$/.exec(address)?.[1] ?? /^([\d.]+):\d+$/.exec(address)?.[1] ?? address;
}

/** Reduces an IPv6 address to its network: a client owns a whole /64 network, and may use another address each time. */
function networkOf(address: string): string {
  const [plain = address] = address.split('%'); // without the zone of a link-local address
  if (!isIPv6(plain)) return address;
  const mapped = /^::ffff:([\d.]+)$/i.exec(plain)?.[1];
  if (mapped !== undefined) return mapped;
  const [before = '', after] = plain.split('::', 2);
  const [head, tail] = [groupsOf(before), groupsOf(after ?? '')];
  const zeros = after === undefined ? 0 : 8 - head.length - tail.length;
  const groups = [...head, ...new Array<string>(Math.max(0, zeros)).fill('0'), ...tail];
  return groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':');
}

function groupsOf(part: string): readonly string[] {
  return part === '' ? [] : part.split(':');
}
