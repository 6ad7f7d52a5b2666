import SchemaBuilder, { type InputListRef, type InputRef, type ListRef, type OutputRef } from '@pothos/core';
import type { GraphQLScalarType } from 'graphql';
import type { GlobalPosition } from '../../events/global-position.ts';
import type { PositionToken } from '../../events/position-token.ts';
import type { OperationContext } from '../contract/operation-context.ts';
import { scalars } from './scalars.ts';

/** The root value of `Query` fields: the written position in a mutation's payload, undefined at the top of an operation. */
export interface Root {
  readonly after?: GlobalPosition;
}

// The types of rows are only known at run time. So the output of a scalar is `unknown` here, and the scalar checks it.
interface Scalar<Input> {
  Input: Input;
  Output: unknown;
}

interface Options {
  Context: OperationContext;
  Root: Root;
  DefaultFieldNullability: false;
  Scalars: {
    String: Scalar<string>;
    ID: Scalar<string>;
    Int: Scalar<number>;
    Float: Scalar<number>;
    Boolean: Scalar<boolean>;
    /** A string with its anchor if clients may send it back. */
    Position: { Input: PositionToken; Output: GlobalPosition | string };
  } & { readonly [N in Exclude<keyof typeof scalars, 'Position'>]: Scalar<InputOf<(typeof scalars)[N]>> };
}

type InputOf<S> = S extends GraphQLScalarType<infer Input, infer _Output> ? Input : never;

export type Types = PothosSchemaTypes.ExtendDefaultTypes<Options>;
export type Builder = PothosSchemaTypes.SchemaBuilder<Types>;

/** The types that an application may give to its builder: those of Pothos and its plugins, such as `AuthScopes`. */
export type BuilderTypes = Omit<
  Partial<PothosSchemaTypes.UserSchemaTypes>,
  'Context' | 'Root' | 'Defaults' | 'DefaultFieldNullability' | 'DefaultInputFieldRequiredness'
>;
/** {@link Types} with the application's additions to the context and to the types. */
export type TypesWith<C extends object, T extends BuilderTypes> = PothosSchemaTypes.ExtendDefaultTypes<
  T & Options & { Context: C }
>;
export type BuilderWith<C extends object, T extends BuilderTypes> = PothosSchemaTypes.SchemaBuilder<TypesWith<C, T>>;
export type ScalarName = keyof Options['Scalars'];
export type AnyOutput = ScalarName | OutputRef | ListRef<Types, unknown>;
export type AnyInput = ScalarName | InputRef | InputListRef<Types, unknown>;

/** Plugins of Pothos by name, and their options. */
export interface BuilderPlugins {
  readonly plugins: readonly string[];
  readonly pluginOptions: object;
}

/** Creates a builder with the scalars; other files add the types. */
export function createBuilder(
  { plugins, pluginOptions }: BuilderPlugins = { plugins: [], pluginOptions: {} },
): Builder {
  // Pothos types the names of plugins by the packages that a program imports.
  const builder = new SchemaBuilder<Options>({
    ...pluginOptions,
    plugins: [...plugins] as never[],
    defaultFieldNullability: false,
  });
  for (const [name, scalar] of Object.entries(scalars)) builder.addScalarType(name as keyof typeof scalars, scalar); // the object's own keys
  return builder;
}
