import { expect, test } from 'vitest';
import { anonymous } from '../../../src/access.ts';
import { createRequestPolicies } from '../../../src/gateway/policies/request-policies.ts';
import { rateLimitClient } from '../../../src/gateway/requests/client.ts';
import type { TransportContext } from '../../../src/gateway/requests/transport-context.ts';

test('each operation is authenticated and counted once, on every way', async () => {
  const told: string[] = [];
  const policies = createRequestPolicies(
    async () => {
      told.push('asked');
      return anonymous;
    },
    async () => void told.push('counted'),
  );
  const request = () => ({ headers: { get: () => null } });
  const req = {};
  for (let way = 0; way < 3; way++)
    expect(await policies.authenticateAndLimit({ req, request: request() })).toBe(anonymous);
  expect(told).toEqual(['asked', 'counted']);
  const [socketRequest, one, two] = [{}, {}, {}];
  for (const message of [one, two, one, two]) await policies.authenticateAndLimit({ socketRequest, message });
  expect(told).toHaveLength(6);
  for (const transport of [{ request: request() }, { req: {}, request: request() }, {}])
    await policies.authenticateAndLimit(transport);
  expect(told).toHaveLength(12);
});

test('a refused operation gets the same error again', async () => {
  let refusals = 0;
  const policies = createRequestPolicies(
    async () => anonymous,
    async () => {
      throw new Error(`refusal ${++refusals}`);
    },
  );
  const request = { headers: { get: () => null } };
  await expect(policies.authenticateAndLimit({ request })).rejects.toThrow('refusal 1');
  await expect(policies.authenticateAndLimit({ request })).rejects.toThrow('refusal 1');
});

test('clients are distinguished by viewer and tenant, else by the address that the trusted proxy saw', () => {
  const from = (remoteAddress: string | undefined, forwarded?: string): TransportContext => ({
    req: { socket: { remoteAddress } },
    request: { headers: { get: (name) => (name === 'x-forwarded-for' ? (forwarded ?? null) : null) } },
  });
  const viewer = (id: string, tenant: string | null) => ({ ...anonymous, id, tenant });
  const here = from('10.0.0.1');
  expect(rateLimitClient(viewer('a', null), here, 0)).toBe(rateLimitClient(viewer('a', null), from('10.0.0.2'), 0));
  const ids = [viewer('a', null), viewer('a', 'b'), viewer('b', null), viewer('["a","b"]', null), anonymous];
  expect(new Set(ids.map((each) => rateLimitClient(each, here, 0))).size).toBe(ids.length);
  const address = (direct: string | undefined, forwarded?: string, proxies?: number) =>
    rateLimitClient(anonymous, from(direct, forwarded), proxies);
  expect(rateLimitClient('system', here, 0)).toBeUndefined();
  expect(address('10.0.0.1', '10.0.0.2')).toBeUndefined();
  expect(address('10.0.0.1', '10.0.0.2', 0)).toBe('address 10.0.0.1');
  expect(address('10.0.0.1', '9.9.9.9, 10.0.0.2', 1)).toBe('address 10.0.0.2');
  for (const same of ['10.0.0.2:4711', '[::ffff:10.0.0.2]:80', '::ffff:10.0.0.2'])
    expect(address('10.0.0.1', same, 1)).toBe('address 10.0.0.2');
  expect(address('::ffff:10.0.0.1')).toBe('address 10.0.0.1');
  const network = address('2001:db8:0:1::1');
  for (const same of ['2001:0DB8::1:ffff:2:3:4', '2001:db8:0:1:ffff::', '2001:db8:0:1::1%eth0'])
    expect(address(same)).toBe(network);
  for (const other of ['2001:db8:0:2::1', '2001:db8::1', '::1', 'fe80::1']) expect(address(other)).not.toBe(network);
});
