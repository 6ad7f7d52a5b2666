import { expect, test } from 'vitest';
import { anonymous } from '../../src/access.ts';
import { createAdmission } from '../../src/gateway/admission.ts';

test('an operation that was let in early is neither asked nor counted again, and the next of the same request is', async () => {
  const told: string[] = [];
  const admission = createAdmission(
    async () => {
      told.push('asked');
      return anonymous;
    },
    async () => void told.push('counted'),
  );
  const request = { headers: { get: () => null } };
  expect(await admission.admitEarly({ request })).toBe(anonymous);
  expect(await admission.admit({ request })).toBe(anonymous);
  expect(told).toEqual(['asked', 'counted']);
  await admission.admit({ request });
  await admission.admit({});
  expect(told).toHaveLength(6);
});

test('what refuses an operation early refuses it again in the same words', async () => {
  let refusals = 0;
  const admission = createAdmission(
    async () => anonymous,
    async () => {
      throw new Error(`refusal ${++refusals}`);
    },
  );
  const request = { headers: { get: () => null } };
  await expect(admission.admitEarly({ request })).rejects.toThrow('refusal 1');
  await expect(admission.admit({ request })).rejects.toThrow('refusal 1');
});
