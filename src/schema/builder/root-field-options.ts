import type { FieldNullability, InputFieldMap, InputShapeFromFields, SchemaTypes, TypeParam } from '@pothos/core';
import type { CommandAccess } from '../../access.ts';

/** The option that the application's own queries, mutations and subscriptions have in addition to those of Pothos. */
export interface RootFieldOptions<Arguments = never> {
  /**
   * Who may use the field. A function receives the viewer and the arguments. The program itself (`system`) always may.
   * @default 'authenticated' if the configuration has `auth`, else 'public'
   */
  readonly access?: CommandAccess<Arguments>;
}

declare global {
  namespace PothosSchemaTypes {
    interface QueryFieldOptions<
      Types extends SchemaTypes,
      Type extends TypeParam<Types>,
      Nullable extends FieldNullability<Type>,
      Args extends InputFieldMap,
      ResolveReturnShape,
    > extends RootFieldOptions<InputShapeFromFields<Args>> {}

    interface MutationFieldOptions<
      Types extends SchemaTypes,
      Type extends TypeParam<Types>,
      Nullable extends FieldNullability<Type>,
      Args extends InputFieldMap,
      ResolveReturnShape,
    > extends RootFieldOptions<InputShapeFromFields<Args>> {}

    interface SubscriptionFieldOptions<
      Types extends SchemaTypes,
      Type extends TypeParam<Types>,
      Nullable extends FieldNullability<Type>,
      Args extends InputFieldMap,
      ResolveShape,
      ResolveReturnShape,
    > extends RootFieldOptions<InputShapeFromFields<Args>> {}
  }
}
